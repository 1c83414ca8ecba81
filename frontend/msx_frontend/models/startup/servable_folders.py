"""`--servables`: every version of every servable of MindSpore Serving in these folders, packed for the start."""

import logging
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from msx_archiver.errors import ArchiveError
from msx_archiver.servable import pack_servable, servable_versions
from msx_core.servables import CONFIG_NAME
from msx_core.start_errors import StartError

log = logging.getLogger("msx.startup")


class ServablesError(StartError):
    """A folder of `--servables` cannot be served; the message names it."""


@dataclass
class PackedServables:
    """`archives` in the order in which they are registered: of a servable, the newest version comes first."""

    archives: list[Path] = field(default_factory=list)
    newest: dict[str, str] = field(default_factory=dict)
    """Newest version by name; that is the default one."""
    failures: list[tuple[str, str]] = field(default_factory=list)
    """Why a version could not be packed, and the name that its archive would have had."""


def packed_servables(folders: Sequence[Path], into: Path) -> PackedServables:
    """Archives in the folder `into`; those whose servable has not changed stay as they are. Blocks.

    Raises ServablesError for a folder that has no servables, or one that another has, too.
    """
    packed = PackedServables()
    for servable in dict.fromkeys(servables_in(folders)):
        _pack_all(servable, into, packed)
    return packed


def servables_in(folders: Sequence[Path]) -> Iterator[Path]:
    """The folder of each servable. Raises ServablesError."""
    found: dict[str, Path] = {}
    for folder in folders:
        own = sorted(path.parent for path in _listed(folder) if path.is_file())
        if not own:
            raise ServablesError(
                f"--servables {folder}: it holds no servable, which is a folder with a {CONFIG_NAME}; name the folder "
                "that the folders of servables are in"
            )
        for servable in own:
            if (other := found.setdefault(servable.name, servable)) != servable:
                raise ServablesError(
                    f"--servables {folder}: the servable {servable.name} is in {other.parent}, too; a server has one "
                    "of each name"
                )
            yield servable


def _listed(folder: Path) -> list[Path]:
    """List folders that are not hidden. Raises ServablesError."""
    try:
        return [entry / CONFIG_NAME for entry in folder.resolve().iterdir() if not entry.name.startswith(".")]
    except OSError as error:
        raise ServablesError(f"--servables {folder}: {error.strerror}") from None


def _pack_all(servable: Path, into: Path, packed: PackedServables) -> None:
    try:
        versions = servable_versions(servable)
    except (ArchiveError, OSError) as error:
        packed.failures.append(_failure(servable, servable.name, error))
        return
    for version in reversed(versions):
        target = into / f"{servable.name}-{version}.mar"
        try:
            packed.archives.append(target if _is_current(target, servable) else _pack(servable, version, into))
            packed.newest.setdefault(servable.name, str(version))
        except (ArchiveError, OSError) as error:
            packed.failures.append(_failure(servable, f"{servable.name} {version}", error))


def _pack(servable: Path, version: int, into: Path) -> Path:
    into.mkdir(parents=True, exist_ok=True)
    return pack_servable(servable, version, into, force=True, warn=lambda text: log.warning("%s: %s", servable, text))


def _failure(servable: Path, what: str, error: Exception) -> tuple[str, str]:
    text = f"servable {what} of {servable.parent} could not be packed: {error}"
    return text, f"{what.replace(' ', '-')}.mar"


def _is_current(target: Path, servable: Path) -> bool:
    """Whether nothing of the servable is younger than its archive."""
    try:
        packed = target.stat().st_mtime_ns
    except OSError:
        return False
    places = ((at, *(os.path.join(at, name) for name in names)) for at, _, names in os.walk(servable))
    return all(os.stat(path).st_mtime_ns < packed for group in places for path in group if not _is_cache(path))


def _is_cache(path: str) -> bool:
    return "__pycache__" in Path(path).parts
