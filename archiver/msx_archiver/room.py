"""Messages about a full disk: the file, what it needs, what is left."""

import errno
import os
from pathlib import Path

from msx_archiver.sizes import human

_FULL = (errno.ENOSPC, errno.EDQUOT)


def is_full(error: OSError) -> bool:
    return error.errno in _FULL


def why(error: OSError, path: Path, needs: float | None = None) -> str:
    """The reason of an OSError while `path` was written, which needs `needs` bytes in all; for a sentence that names
    `path`."""
    reason = error.strerror or str(error)
    return f"{reason} ({room(path, needs)})" if is_full(error) else reason


def room(path: Path, needs: float | None = None) -> str:
    """`it needs 1.5 MiB, and its disk has 12.0 KiB left`"""
    wanted = f"it needs {human(needs)}, and " if needs else ""
    return f"{wanted}its disk has {_left(path)}"


def _left(path: Path) -> str:
    """The free space; a quota may allow less."""
    try:
        found = os.statvfs(next(folder for folder in (path, *path.absolute().parents) if folder.exists()))
    except (OSError, StopIteration):
        return "an unknown number of bytes left"
    full_of_files = found.f_files > 0 and found.f_favail == 0
    return "no room for another file" if full_of_files else f"{human(found.f_bavail * found.f_frsize)} left"
