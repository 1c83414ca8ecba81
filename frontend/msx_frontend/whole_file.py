"""Small files of the server: written aside, so that they are always whole, and nothing is left of a failure."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import psutil

from msx_archiver.room import why


class NotWritten(OSError):
    """As text, one sentence without an end: the file and the reason; of a full disk what is needed and what is left."""


def write_whole(path: Path, data: bytes, mode: int = 0o644) -> None:
    """Put `data` at `path`, with the folders above it. Raises NotWritten."""
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
    """Remove what processes that were killed meanwhile left of files called `name`, a pattern."""
    for aside in folder.glob(f"{name}.*.tmp"):
        pid = aside.suffixes[-2][1:] if len(aside.suffixes) > 1 else ""
        if pid == str(os.getpid()) or not (pid.isdecimal() and psutil.pid_exists(int(pid))):
            aside.unlink(missing_ok=True)
