"""Writes small files completely or not at all: to a temporary file, which is renamed."""

import contextlib
import os
from pathlib import Path

import psutil

from msx_archiver.room import why


class NotWritten(OSError):
    """A file cannot be written. The text names the file and the reason, for a full disk also the needed and the free
    space. It does not end with a full stop."""


def write_whole(path: Path, data: bytes, mode: int = 0o644) -> None:
    """Write `data` to `path`, and make its folders. Raises NotWritten."""
    aside = path.with_suffix(f".{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "wb") as file:
            file.write(data)
        aside.rename(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            aside.unlink()
        raise NotWritten(f"{path} cannot be written: {why(error, path, len(data))}") from error


def sweep(folder: Path, name: str) -> None:
    """Remove temporary files that killed processes have left for files with this name or pattern."""
    for aside in folder.glob(f"{name}.*.tmp"):
        pid = aside.suffixes[-2][1:] if len(aside.suffixes) > 1 else ""
        if pid == str(os.getpid()) or not (pid.isdecimal() and psutil.pid_exists(int(pid))):
            aside.unlink(missing_ok=True)
