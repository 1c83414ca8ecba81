"""Folders for logs, home and temporary files of the server and its workers, where the usual ones cannot be written."""

import os
from collections.abc import Mapping, MutableMapping
from pathlib import Path

from msx_frontend.config.state_folder import StateFolder, can_be_made, takes_files

_LOGS = ("LOG_LOCATION", "METRICS_LOCATION")


def in_current_folder(name: str, state: StateFolder) -> Path:
    """The path of a file that TorchServe puts into the current folder: there if it can be written, else in the state
    folder."""
    here = Path.cwd() / name
    return here if can_be_made(here.parent) and (here.is_file() or can_be_made(here)) else state.path / name


def log_location(env: Mapping[str, str]) -> Path:
    """LOG_LOCATION, or TorchServe's ./logs."""
    return Path(env.get("LOG_LOCATION") or "logs")


def settle_logs(env: MutableMapping[str, str], state: StateFolder) -> None:
    """Put logs, metric logs and snapshots into the state folder where `./logs` cannot be written.

    Variables that the user has set stay as they are. A volume that is mounted as `./logs` counts, whatever is around
    it.
    """
    folder = in_current_folder("logs", state)
    if folder.parent == state.path and not takes_files(log_location({})):
        env.update({name: str(folder) for name in _LOGS if not env.get(name)})


def settle_home(env: MutableMapping[str, str], state: StateFolder) -> None:
    """Set a home, a cache and a folder of temporary files, which libraries of models need.

    An existing home is kept, even if it cannot be written, because models may need its files.
    """
    if not _is_home(env):
        env["HOME"] = str(_made(state.path / "home"))
    elif not env.get("XDG_CACHE_HOME") and not can_be_made(Path("~/.cache").expanduser()):
        env["XDG_CACHE_HOME"] = str(_made(state.path / "cache"))
    named = [folder for name in ("TMPDIR", "TEMP", "TMP") if (folder := env.get(name))]
    if not any(takes_files(Path(folder)) for folder in (*named, "/tmp", "/var/tmp")):  # noqa: S108 - it only looks
        env["TMPDIR"] = str(_made(state.run / "tmp"))


def _is_home(env: MutableMapping[str, str]) -> bool:
    home = Path(env.get("HOME") or os.path.expanduser("~"))
    if home == Path("/"):
        return os.geteuid() == 0 and takes_files(home)
    return home.is_absolute() and home.is_dir()


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder
