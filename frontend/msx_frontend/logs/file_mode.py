"""The mode of log files: clients' addresses, names of models and what handlers print are not for every user of the
machine."""

import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

DEFAULT = 0o640


def file_mode(configured: str) -> int:
    """`log_file_mode` without the bits that the umask takes. To be called before threads make files."""
    umask = os.umask(0o077)
    os.umask(umask)
    return int(configured, 8) & ~umask


def open_log(path: str | Path, flags: int, mode: int) -> int:
    """A descriptor of the file, which has `mode` from now on. Raises OSError."""
    fd = os.open(path, flags | os.O_CLOEXEC, mode)
    set_mode([fd], mode)
    return fd


def set_mode(files: Iterable[int | Path], mode: int) -> None:
    """Also of files that an earlier server made for all to read. Pipes and devices, and what belongs to another user,
    stay as they are."""
    for file in files:
        with suppress(OSError):
            if stat.S_ISREG(os.stat(file).st_mode):
                os.chmod(file, mode)
