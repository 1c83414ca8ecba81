"""Digests of large files, kept so that a second start does not read them again."""

import os
import tempfile
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import msgspec

_ASIDE = ".digests-"

Stamp = tuple[int, int, int]
KnownDigests = dict[str, tuple[int, int, int, str]]
"""Files by absolute path: size in bytes, modification time in ns, inode, SHA-256."""


class DigestFile:
    """A small JSON file of `KnownDigests`. An unreadable one counts as empty; a lost write costs reading again."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()

    def recall(self, file: Path) -> str | None:
        """The digest, if the file was read before and has not changed since. Raises OSError."""
        known = self._load().get(str(file.resolve()))
        return known[3] if known and known[:3] == stamp(file) else None

    def of(self, file: Path, opened: Stamp, compute: Callable[[], str]) -> str:
        """The kept digest; otherwise it is computed from the file that had the stamp `opened`. Raises OSError."""
        if known := self.recall(file):
            return known
        digest = compute()
        if stamp(file) == opened:
            self._remember(str(file.resolve()), (*opened, digest))
        return digest

    def clean(self) -> None:
        """Removes the unfinished file of a process that was killed."""
        with self._lock, suppress(OSError):
            for aside in self._path.parent.glob(f"{_ASIDE}*"):
                aside.unlink(missing_ok=True)

    def _load(self) -> KnownDigests:
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=KnownDigests)
        except (OSError, msgspec.MsgspecError):
            return {}

    def _remember(self, key: str, entry: tuple[int, int, int, str]) -> None:
        with self._lock:
            known = {path: value for path, value in self._load().items() if Path(path).exists()}
            self._write(msgspec.json.encode({**known, key: entry}))

    def _write(self, data: bytes) -> None:
        # Without the file everything works, only slower; a full disk is reported elsewhere.
        with suppress(OSError):
            handle, name = tempfile.mkstemp(prefix=_ASIDE, dir=self._path.parent)
            try:
                with open(handle, "wb") as file:
                    file.write(data)
                os.replace(name, self._path)
            finally:
                Path(name).unlink(missing_ok=True)


def stamp(file: Path) -> Stamp:
    """Distinguishes contents of a file without reading it: size, modification time in ns, inode."""
    status = file.stat()
    return status.st_size, status.st_mtime_ns, status.st_ino
