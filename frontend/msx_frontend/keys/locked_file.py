"""A private file of one running server, which holds a lock on it."""

import fcntl
import os
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from msx_archiver.room import why
from msx_core.start_errors import StartError

_ATTEMPTS = 100
_MOST_BYTES = 1 << 16


class TokenFileError(StartError):
    """The key file cannot be written, or belongs to another running server; the message names it."""


class KeyFileTaken(TokenFileError):
    """It belongs to another running server."""


class LockedFile:
    """A file that is always complete, with mode 0600. The inode that has its name is locked by flock.

    A server that finds the file unlocked knows that the server before it has died, and takes the file over.
    """

    def __init__(self, path: Path, text_after: Callable[[bytes | None], str]) -> None:
        """`text_after` makes the text from the one that an earlier server has left: "" if other users could read or
        write it, None without a file."""
        self._path, self._text_after = path, text_after
        self._fd = -1
        with _errors_named(path):
            if not any(self._take() for _ in range(_ATTEMPTS)):
                raise TokenFileError(f"{path} keeps changing: other servers are starting in the same folder")

    def replace(self, text: str) -> None:
        """Raises TokenFileError."""
        if self._fd < 0:
            raise TokenFileError(f"{self._path} belongs to the server that follows this one: ask again")
        with _errors_named(self._path, len(text)):
            fd = self._publish(text, os.replace)
        os.close(self._fd)
        self._fd = fd

    def close(self, *, keep: bool = False) -> None:
        """Remove the file, unless the next server shall use it. May be called again."""
        if self._fd < 0:
            return
        with suppress(OSError):
            if not keep and self._is_named(self._fd):
                self._path.unlink()
        os.close(self._fd)
        self._fd = -1

    def _take(self) -> bool:
        """False when another process has changed the file meanwhile: try again then."""
        try:
            old = os.open(self._path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except FileNotFoundError:
            return self._create(self._text_after(None))
        try:
            if not _lock(old):
                raise KeyFileTaken(
                    f"{self._path} belongs to a server that is running: stop it, or start this one in another folder"
                )
            if not self._is_named(old):
                return False
            self._fd = self._publish(self._text_after(_private_content(old)), os.replace)
            return True
        finally:
            os.close(old)

    def _create(self, text: str) -> bool:
        try:
            self._fd = self._publish(text, os.link)  # unlike a rename, it never replaces another server's file
        except FileExistsError:
            return False
        return True

    def _publish(self, text: str, move: Callable[[str, Path], None]) -> int:
        """Write and lock a new file before it gets its name."""
        fd, temporary = tempfile.mkstemp(dir=self._path.parent, prefix=f".{self._path.name}.")
        try:
            _lock(fd)
            os.write(fd, text.encode())
            move(temporary, self._path)
        except OSError:
            os.close(fd)
            raise
        finally:
            with suppress(FileNotFoundError):
                os.unlink(temporary)
        return fd

    def _is_named(self, fd: int) -> bool:
        with suppress(FileNotFoundError):
            return os.path.samestat(os.fstat(fd), os.lstat(self._path))
        return False


def remove_left(path: str) -> bool:
    """Remove the file if no server has locked it. Raises OSError."""
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        if not _lock(fd) or not os.path.samestat(os.fstat(fd), os.lstat(path)):
            return False
        os.unlink(path)
        return True
    finally:
        os.close(fd)


def _private_content(fd: int) -> bytes:
    """The text of the file; "" if other users can read or write it."""
    found = os.fstat(fd)
    private = stat.S_ISREG(found.st_mode) and not found.st_mode & 0o077 and found.st_uid == os.geteuid()
    return os.read(fd, _MOST_BYTES) if private else b""


def _lock(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextmanager
def _errors_named(path: Path, size: int = 512) -> Iterator[None]:
    try:
        yield
    except OSError as exc:
        raise TokenFileError(f"{path}: the key file cannot be written: {why(exc, path, size)}") from exc
