"""Where a node keeps what it fetches: each content once, whole or not at all, and none is removed that is in use."""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import platformdirs

from msx_archiver import record
from msx_archiver.sizes import human
from msx_archiver.uses import Uses
from msx_core.manifest import FileEntry
from msx_ray.listing import Listing

CACHE = "MSX_NODE_CACHE"
KEEP = "MSX_NODE_CACHE_DAYS"
KEEP_DAYS = 30.0
_DAY = 86400.0
_PARTIAL = ".partial-"
_RECORD = ".record-"


def node_cache() -> Path:
    """Where this node keeps what it fetches: `MSX_NODE_CACHE`, else a folder of the user's cache."""
    return Path(os.environ.get(CACHE) or platformdirs.user_cache_path("msx-serve"))


def node_folders(root: Path, digest: str) -> Path:
    """Where a node keeps what MindSpore compiles for the content."""
    return root / "contents" / f"compiled-{digest}"


class NodeCache:
    """`<root>/contents/<kind>-<digest>`. What this process has found or kept, it holds until it ends. Blocks.

    Raises OSError.
    """

    def __init__(self, root: Path) -> None:
        self.folder = root / "contents"
        self.folder.mkdir(parents=True, exist_ok=True)
        self._uses = Uses(self.folder / ".uses")
        if not self._uses.exclusive:
            raise PermissionError(f"{self.folder} cannot be written: set {CACHE} to a folder that can")

    def find(self, name: str) -> Path | None:
        """The content, if it is whole and unchanged. Raises OSError."""
        self._uses.hold(name)
        folder, noted = self.folder / name, record.read(self.folder / f"{_RECORD}{name}")
        if noted is None or not folder.is_dir():
            return None
        changed, now = record.changed(folder, noted)
        if changed:
            return None
        if now != noted:
            record.write(self.folder / f"{_RECORD}{name}", now)
        os.utime(self.folder / f"{_RECORD}{name}")
        return folder

    @contextlib.contextmanager
    def alone(self, name: str) -> Iterator[bool]:
        """Whether no other process fetches it; then none does before the end of the block."""
        with self._uses.nobody(f"fetch {name}") as alone:
            yield alone

    def partial(self, name: str) -> Path:
        """Where it is put together. It stays after a break."""
        folder = self.folder / f"{_PARTIAL}{name}"
        folder.mkdir(exist_ok=True)
        os.utime(folder)
        return folder

    def keep(self, name: str, listing: Listing) -> Path:
        """Move a content that is whole to its place."""
        folder, partial = self.folder / name, self.partial(name)
        noted = record.take(
            partial, {file.path: FileEntry(size=file.size, sha256=file.sha256) for file in listing.files}
        )
        (self.folder / f"{_RECORD}{name}").unlink(missing_ok=True)
        shutil.rmtree(folder, ignore_errors=True)
        partial.rename(folder)
        record.write(self.folder / f"{_RECORD}{name}", noted)
        return folder

    def check_room(self, name: str, needed: int) -> None:
        """Removes what nobody uses and is old, and the rest that nobody uses where there is no room. Raises OSError."""
        limit = time.time() - float(os.environ.get(KEEP) or KEEP_DAYS) * _DAY
        for path, used in self._others(name):
            if used < limit or self._free() < needed:
                self._remove(path)
        if (free := self._free()) < needed:
            raise OSError(
                f"{self.folder} needs {human(needed)} for the {name.partition('-')[0]}, and its disk has {human(free)} "
                f"left: make room, or set {CACHE} to a folder on another disk"
            )

    def _others(self, name: str) -> list[tuple[Path, float]]:
        """Find the others with the time of their last use, the oldest first."""
        found = []
        for path in self.folder.iterdir():
            if path.is_dir() and path.name not in (name, f"{_PARTIAL}{name}"):
                noted = self.folder / f"{_RECORD}{path.name}"
                found.append((path, (noted if noted.exists() else path).stat().st_mtime))
        return sorted(found, key=lambda one: one[1])

    def _remove(self, path: Path) -> None:
        name = path.name.removeprefix(_PARTIAL)
        with self._uses.nobody(name) as unused, self._uses.nobody(f"fetch {name}") as alone:
            if unused and alone:
                (self.folder / f"{_RECORD}{name}").unlink(missing_ok=True)
                shutil.rmtree(path, ignore_errors=True)

    def _free(self) -> int:
        status = os.statvfs(self.folder)
        return status.f_bavail * status.f_frsize

    def hold_compiled(self, digest: str) -> Path:
        """The folder for what MindSpore compiles, made if necessary."""
        folder = node_folders(self.folder.parent, digest)
        self._uses.hold(folder.name)
        folder.mkdir(exist_ok=True)
        os.utime(folder)
        return folder


def throttled(progress: Callable[[str], None], interval: float = 0.5) -> Callable[[str], None]:
    """Passes a phase on at most every `interval` seconds."""
    last = float("-inf")

    def tell(phase: str) -> None:
        nonlocal last
        if time.monotonic() - last >= interval:
            last = time.monotonic()
            progress(phase)

    return tell
