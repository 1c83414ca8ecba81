"""The running servers of this user: one lock and one description per state folder, and an index of all."""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
from collections.abc import Iterable
from pathlib import Path

import msgspec
import platformdirs

from msx_archiver.room import why
from msx_frontend.assembly.pid_file import PidFile
from msx_frontend.config.state_folder import BESIDE_MODELS, INFO, LOCK, StateFolder, usual_folders
from msx_frontend.start_errors import StartError
from msx_frontend.whole_file import NotWritten, sweep, write_whole

log = logging.getLogger("msx.server")


class InstanceError(StartError):
    """Another server has this state folder, or its description cannot be written."""


class InstanceInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What a running server tells of itself in `server.json` of its state folder."""

    pid: int
    model_store: str
    state_dir: str = ""
    """Where this lies. "" is said by servers that always had it in `.msx` of the model store."""
    inference: str
    management: str
    metrics: str | None
    grpc_inference: str
    grpc_management: str
    certificate: str | None = None
    """In PEM, where listeners speak TLS: who asks this server trusts it alone."""
    key_file: str | None
    status_socket: str | None = None
    """What `--status` asks; None where the folder of the state can have no socket."""
    log_file: str | None
    """Of stdout and stderr, where they go to one."""
    log_files: list[str] | None = None
    """Where the log is; None is said by servers that write it to `log_file`."""
    log_folder: str | None = None
    """Of TorchServe's log files, where they are written."""
    started_at: float
    drain_timeout: float = 30.0
    """Seconds."""
    not_loaded: list[str] = []
    """Why models that it should have started with are not there."""
    configuration: str = ""
    """The file of its settings, or that there is none."""
    state: str = ""
    """The file in which it remembers its models, or that there is none, and what it writes instead."""
    models: str = ""
    """What it started with: asked for, and remembered."""
    hint: str = ""

    @property
    def state_folder(self) -> Path:
        return Path(self.state_dir or Path(self.model_store) / BESIDE_MODELS)

    @property
    def logs(self) -> list[str]:
        if self.log_files is not None:
            return self.log_files
        return [self.log_file] if self.log_file else []

    def places(self) -> dict[str, str]:
        """What it read, where it listens, where its tokens and its log are; as texts for the user."""
        read = {"config": self.configuration, "state": self.state, "models": self.models}
        found = {
            **{name: text for name, text in read.items() if text},
            "inference": self.inference,
            "management": self.management,
            "metrics": self.metrics or "off",
            "gRPC": f"{self.grpc_inference}, management {self.grpc_management}",
            "tokens": self.key_file or "off (--disable-token-auth)",
        }
        if self.logs:
            found["log"] = ", ".join(self.logs)
        return {**found, "log files": self.log_folder} if self.log_folder else found

    def summary(self) -> str:
        return ", ".join(f"{name} {place}" for name, place in self.places().items())


class Instance:
    """Held by a server while it lives. A server that was killed leaves files, but no lock: they count for nothing."""

    def __init__(self, state: StateFolder) -> None:
        """Raises StateFolderError, or InstanceError when another server holds this folder."""
        state.make()
        self.state = state
        self._pid_file, self._index = PidFile(), _index()
        try:
            self._lock = os.open(state.lock, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise InstanceError(f"{state.lock} cannot be written: {why(error, state.path)}.") from None
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._lock)
            raise InstanceError(_taken(state, _read(state.info))) from None
        if not state.is_named and (others := self._others()):
            os.close(self._lock)
            raise InstanceError(_taken(state, others[0]))
        for aside in state.path.glob("server.*.tmp"):  # of a server that was killed
            aside.unlink(missing_ok=True)
        if self._index is not None:
            sweep(self._index, "*")

    def _others(self) -> list[InstanceInfo]:
        """With and without `--ncs` there are different folders for one model store."""
        return running_in(path for path in usual_folders(self.state.model_store) if path != self.state.path)

    def publish(self, info: InstanceInfo) -> None:
        """Raises InstanceError."""
        self._pid_file.write()
        data = msgspec.json.format(msgspec.json.encode(info), indent=2)
        try:
            write_whole(self.state.info, data)
        except NotWritten as error:
            raise InstanceError(f"{error}.") from error
        self._list(f"{info.pid}.json", data)

    def _list(self, name: str, data: bytes) -> None:
        """Only a convenience for `--stop` and `--status`: some users do not have a home."""
        try:
            if self._index is not None:
                write_whole(self._index / name, data)
        except NotWritten as error:
            log.info("%s; --stop and --status find this server by --state-dir %s", error, self.state.path)

    def close(self) -> None:
        for path in (self.state.info, self._index and self._index / f"{os.getpid()}.json"):
            if path is not None:
                with contextlib.suppress(OSError):
                    path.unlink(missing_ok=True)
        self._pid_file.remove()
        os.close(self._lock)


def _taken(state: StateFolder, running: InstanceInfo | None) -> str:
    who = f" (pid {running.pid}, inference at {running.inference})" if running else ""
    place = f"with the state folder {state.path}" if state.is_named else f"on the model store {state.model_store}"
    return (
        f"MSX is already running {place}{who}, please use msx-serve --stop to stop it, or give another one "
        "a --state-dir of its own."
    )


def running_in(folders: Iterable[Path]) -> list[InstanceInfo]:
    """The servers that hold these state folders now."""
    infos = [_read(folder / INFO) for folder in folders if _is_locked(folder / LOCK)]
    return [info for info in infos if info is not None]


def all_running() -> list[InstanceInfo]:
    """All listed servers of this user; what a killed one left in the index is removed."""
    found: list[InstanceInfo] = []
    index = _index()
    for path in [] if index is None else sorted(index.glob("*.json")):
        info = _read(path)
        now = running_in([info.state_folder]) if info is not None else []
        if info is not None and [one.pid for one in now] == [info.pid]:
            found += now
        else:
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)
    return found


def _is_locked(path: Path) -> bool:
    try:
        fd = os.open(path, os.O_RDWR)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


def _read(path: Path) -> InstanceInfo | None:
    with contextlib.suppress(OSError, msgspec.DecodeError):
        return msgspec.json.decode(path.read_bytes(), type=InstanceInfo)
    return None


def _index() -> Path | None:
    """None for a user without a home: `~` is not expanded then."""
    path = Path(platformdirs.user_state_dir("msx-serve")) / "servers"
    return path if path.is_absolute() else None


__all__ = ["Instance", "InstanceError", "InstanceInfo", "all_running", "running_in"]
