"""Copies bytes once and computes their digest."""

import hashlib
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

from msx_core.manifest import FileEntry

CHUNK = 256 << 10
"""Bytes. Much larger buffers would be allocated from the system each time, which costs more than reading."""

Progress = Callable[[int], Any]
"""Called with the number of bytes since the last call."""


Watch = Callable[[str, int], AbstractContextManager[Progress]]
"""Takes a label and a number of bytes; returns a context manager with the Progress to call."""


class ByteSource(Protocol):
    def read(self, size: int, /) -> bytes: ...


class ByteSink(Protocol):
    def write(self, data: bytes, /) -> Any: ...


def ignore(done: int) -> None:
    """A Progress that does nothing."""


def unwatched(label: str, total: int) -> AbstractContextManager[Progress]:
    """A Watch that does nothing."""
    return nullcontext(ignore)


class NullSink:
    """A sink that drops its bytes: for a digest without a copy."""

    def write(self, data: bytes, /) -> int:
        return len(data)


def copy(source: ByteSource, sink: ByteSink, progress: Progress = ignore) -> FileEntry:
    """Copies all bytes of `source` into `sink`; returns their number and SHA-256."""
    hashing = HashingSource(source)
    pour(hashing, sink, progress)
    return hashing.entry


def pour(source: ByteSource, sink: ByteSink, progress: Progress = ignore) -> None:
    """The same, without a digest."""
    while chunk := source.read(CHUNK):
        sink.write(chunk)
        progress(len(chunk))


class HashingSource:
    """A source that computes the digest of the bytes that are read through it."""

    def __init__(self, source: ByteSource, progress: Progress = ignore) -> None:
        self._source = source
        self._progress = progress
        self._digest = hashlib.sha256()
        self._size = 0

    def read(self, size: int = CHUNK, /) -> bytes:
        chunk = self._source.read(size)
        self._digest.update(chunk)
        self._size += len(chunk)
        self._progress(len(chunk))
        return chunk

    @property
    def entry(self) -> FileEntry:
        return FileEntry(size=self._size, sha256=self._digest.hexdigest())


class FilePart:
    """A source of the next `size` bytes of `file`. Raises EOFError if the file ends before."""

    def __init__(self, file: ByteSource, size: int) -> None:
        self._file = file
        self._left = size

    def read(self, size: int = CHUNK, /) -> bytes:
        if self._left == 0:
            return b""
        chunk = self._file.read(min(size, self._left))
        if not chunk:
            raise EOFError(f"{self._left} bytes are missing at its end")
        self._left -= len(chunk)
        return chunk
