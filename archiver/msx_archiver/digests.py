"""Digests of large files, remembered so that a second start does not read them again."""

from __future__ import annotations

import os
import tempfile
import threading
from contextlib import suppress
from pathlib import Path

import msgspec

from msx_archiver.copying import Nowhere, copy

Known = dict[str, tuple[int, int, int, str]]
"""By absolute path: size in bytes, modification time in ns, inode, SHA-256."""


class DigestFile:
    """A small JSON file of `Known`. One that cannot be read is as good as empty; a lost write costs a re-read."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()

    def recall(self, file: Path) -> str | None:
        """The digest if the file was read before and has not changed since. Raises OSError."""
        known = self._load().get(str(file.resolve()))
        return known[3] if known and known[:3] == stamp(file) else None

    def of(self, file: Path) -> str:
        """SHA-256 of the file's bytes as 64 hex digits. Raises OSError."""
        return self.recall(file) or self._read(file)

    def _read(self, file: Path) -> str:
        before, digest = stamp(file), _sha256(file)
        if stamp(file) == before:
            self._remember(str(file.resolve()), (*before, digest))
        return digest

    def _load(self) -> Known:
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=Known)
        except (OSError, msgspec.MsgspecError):
            return {}

    def _remember(self, key: str, entry: tuple[int, int, int, str]) -> None:
        with self._lock:
            known = {path: value for path, value in self._load().items() if Path(path).exists()}
            self._write(msgspec.json.encode({**known, key: entry}))

    def _write(self, data: bytes) -> None:
        # Without the memory all still works, only slower: a full disk is reported by who needs it.
        with suppress(OSError):
            handle, name = tempfile.mkstemp(prefix=".digests-", dir=self._path.parent)
            try:
                with open(handle, "wb") as file:
                    file.write(data)
                os.replace(name, self._path)
            finally:
                Path(name).unlink(missing_ok=True)


def stamp(file: Path) -> tuple[int, int, int]:
    """What tells one content of a file from another without reading it: size, modification time in ns, inode."""
    status = file.stat()
    return status.st_size, status.st_mtime_ns, status.st_ino


def _sha256(file: Path) -> str:
    with file.open("rb", buffering=0) as source:
        return copy(source, Nowhere()).sha256
