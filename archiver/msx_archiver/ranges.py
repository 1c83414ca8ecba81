"""Copies a part of a file in the kernel; file systems that share blocks copy nothing at all."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from msx_archiver.copying import CHUNK, Progress, ignore
from msx_core.manifest import FileEntry

STEP = 32 << 20
"""Bytes that are copied while the bytes before them are read for the digest."""


def copy_range(source: int, offset: int, size: int, target: int, progress: Progress = ignore) -> FileEntry:
    """Copies `size` bytes from `offset` of one file descriptor to the beginning of the other.

    Returns the size and SHA-256 of what has arrived: `target` must be readable, too. Raises OSError, or EOFError if
    `source` ends before.
    """

    def copy_step(at: int) -> None:
        _copy(source, offset + at, target, at, min(STEP, size - at))

    digest = hashlib.sha256()
    with ThreadPoolExecutor(1, "copy") as pool:
        starts = range(0, size, STEP)
        for at, _ in zip(starts, pool.map(copy_step, starts), strict=True):
            for chunk in _read(target, at, min(STEP, size - at)):
                digest.update(chunk)
                progress(len(chunk))
    return FileEntry(size=size, sha256=digest.hexdigest())


def _copy(source: int, offset: int, target: int, at: int, size: int) -> None:
    while size:
        done = _in_kernel(source, offset, target, at, size) or _by_hand(source, offset, target, at, size)
        if not done:
            raise EOFError(f"{size} bytes are missing at its end")
        offset, at, size = offset + done, at + done, size - done


def _in_kernel(source: int, offset: int, target: int, at: int, size: int) -> int:
    """Copies in the kernel; returns 0 if the kernel, the file system or this build of Python does not support it."""
    try:
        return os.copy_file_range(source, target, size, offset, at)
    except (AttributeError, OSError):
        return 0


def _by_hand(source: int, offset: int, target: int, at: int, size: int) -> int:
    """Copies the next bytes in user space; errors such as a full disk are raised here."""
    data = os.pread(source, min(size, CHUNK), offset)
    return os.pwrite(target, data, at) if data else 0


def _read(file: int, at: int, size: int) -> Iterator[bytes]:
    end = at + size
    while at < end:
        chunk = os.pread(file, min(CHUNK, end - at), at)
        if not chunk:
            raise EOFError(f"{end - at} bytes are missing at its end")
        at += len(chunk)
        yield chunk
