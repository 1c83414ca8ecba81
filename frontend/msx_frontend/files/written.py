"""A file that is being written, in the folder of files. Every method blocks."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from msx_archiver.room import why
from msx_core.service_errors import ServiceUnavailable


class WrittenFile:
    """`size`: bytes that are surely in it. Methods raise ServiceUnavailable where the disk has no room, or fails; then
    nothing has changed."""

    def __init__(self, path: Path) -> None:
        """Opens the file, which may be there, or makes it."""
        self.path = path
        with _told(path):
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        self.size = os.fstat(self._fd).st_size

    def append(self, data: bytes) -> None:
        """Where it fails in the middle, the file is cut again to what was in it."""
        try:
            with _told(self.path, len(data)):
                _write_at(self._fd, data, self.size)
        except ServiceUnavailable:
            self.cut(self.size)
            raise
        self.size += len(data)

    def cut(self, size: int) -> None:
        """Keep the first `size` bytes."""
        with suppress(OSError):
            os.ftruncate(self._fd, size)
        self.size = size

    def save(self) -> None:
        """Put all on the disk."""
        with _told(self.path):
            os.fsync(self._fd)

    def close(self) -> None:
        os.close(self._fd)


def _write_at(fd: int, data: bytes, place: int) -> None:
    view = memoryview(data)
    while view:
        done = os.pwrite(fd, view, place)
        view, place = view[done:], place + done


@contextmanager
def _told(path: Path, needs: int | None = None) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ServiceUnavailable(f"{path} cannot be written: {why(error, path, needs)}. Make room there.") from error
