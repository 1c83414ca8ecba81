"""Who uses what lies in a folder that several servers share."""

import errno
import fcntl
import hashlib
import os
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_FLOCK = struct.Struct("hhqqi4x")
"""`struct flock` of Linux on machines of 64 bits: type, whence, start, length, pid."""


class Uses:
    """Locks of one file: a name has a byte of it, shared by those who use the name.

    They are locks of the open file, so that they end with the process, however it ends, and several `Uses` of one
    process exclude each other. A file that cannot be written or made (a read-only folder) has no users who could
    remove anything. Thread-safe.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fd = -1
        self._held: set[str] = set()
        self._excluded: set[str] = set()
        self._changed = threading.Condition()

    @property
    def exclusive(self) -> bool:
        """`nobody` can exclude others: the file can be written."""
        with self._changed:
            self._open()
            return self._fd >= 0 and fcntl.fcntl(self._fd, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDWR

    def hold(self, name: str) -> bool:
        """This process uses what has that name; waits while somebody removes it. False if it did so before. Blocks;
        raises OSError."""
        with self._changed:
            self._changed.wait_for(lambda: name not in self._excluded)
            self._open()
            if name in self._held:
                return False
            self._held.add(name)
        if self._fd >= 0:
            self._set(name, fcntl.F_RDLCK, wait=True)
        return True

    def release(self, name: str) -> None:
        """It does not use it any more. Idempotent."""
        with self._changed:
            if name in self._held:
                self._held.discard(name)
                if self._fd >= 0:
                    self._set(name, fcntl.F_UNLCK)

    @contextmanager
    def nobody(self, name: str) -> Iterator[bool]:
        """Whether nobody uses it; then nobody does before the end of the block."""
        if not self._exclude(name):
            yield False
            return
        try:
            yield True
        finally:
            with self._changed:
                self._set(name, fcntl.F_UNLCK)
                self._excluded.discard(name)
                self._changed.notify_all()

    def _exclude(self, name: str) -> bool:
        with self._changed:
            self._open()
            if self._fd < 0 or name in self._held | self._excluded or not self._set(name, fcntl.F_WRLCK):
                return False
            self._excluded.add(name)
            return True

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
        self._fd = -1
        self._held.clear()

    def _open(self) -> None:
        """Again if the file was removed, with what is held."""
        if self._fd >= 0 and _is_named(self._path, self._fd):
            return
        old, self._fd = self._fd, _opened(self._path)
        if self._fd >= 0:
            for name in self._held:
                self._set(name, fcntl.F_RDLCK)
        if old >= 0:
            os.close(old)

    def _set(self, name: str, kind: int, *, wait: bool = False) -> bool:
        """False when another process has a lock that excludes this one."""
        place = int.from_bytes(hashlib.sha256(name.encode()).digest()[:7], "big")
        command = fcntl.F_OFD_SETLKW if wait else fcntl.F_OFD_SETLK
        try:
            fcntl.fcntl(self._fd, command, _FLOCK.pack(kind, os.SEEK_SET, place, 1, 0))
        except OSError as error:
            if error.errno in (errno.EAGAIN, errno.EACCES, errno.EBADF):  # EBADF: opened for reading alone
                return False
            raise
        return True


def _opened(path: Path) -> int:
    """-1 where the file is not there and cannot be made."""
    for flags in (os.O_RDWR | os.O_CREAT, os.O_RDONLY):
        try:
            return os.open(path, flags | os.O_CLOEXEC, 0o666)
        except OSError as error:
            if error.errno not in (errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOENT):
                raise
    return -1


def _is_named(path: Path, fd: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(fd))
    except FileNotFoundError:
        return False
