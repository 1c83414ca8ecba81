"""The size of the cache of hub models: what nobody uses goes, the longest unused first."""

import fcntl
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from msx_archiver.uses import Uses
from msx_frontend.archives.hub.content import LISTING, LOCK, PART


class _Entry(NamedTuple):
    used: float
    size: int
    path: Path

    @property
    def id(self) -> str:
        return self.path.name.removesuffix(PART)


def shrink(root: Path, most: int, uses: Uses) -> list[Path]:
    """Removes contents that no server uses, also unfinished ones, until those that are left have `most` bytes in all.

    Blocks; returns what was removed.
    """
    unused = [entry for home in _homes(root) for entry in _entries(home) if _is_free(entry, uses)]
    left, removed = sum(entry.size for entry in unused), []
    for entry in sorted(unused):
        if left <= most:
            break
        with _alone(entry.path.parent) as alone, uses.nobody(entry.id) as nobody:
            if alone and nobody:
                shutil.rmtree(entry.path, ignore_errors=True)
                removed.append(entry.path)
                left -= entry.size
    return removed


def _homes(root: Path) -> Iterator[Path]:
    yield from (path for path in root.glob("*--*") if path.is_dir())


def _entries(home: Path) -> Iterator[_Entry]:
    for path in home.iterdir():
        if path.is_dir() and (path.name.endswith(PART) or (path / LISTING).is_file()):
            sizes = [one.stat() for one in path.rglob("*") if one.is_file()]
            at = path if path.name.endswith(PART) else path / LISTING
            yield _Entry(at.stat().st_mtime, sum(one.st_size for one in sizes), path)


def _is_free(entry: _Entry, uses: Uses) -> bool:
    with uses.nobody(entry.id) as nobody:
        return nobody


@contextmanager
def _alone(home: Path) -> Iterator[bool]:
    """Whether no process fetches the model now; then none does before the end of the block."""
    try:
        with (home / LOCK).open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield True
    except OSError:
        yield False
