"""Files with an operator's secrets: read with a bound, and not where others may write them."""

import os
import stat
from pathlib import Path
from typing import NamedTuple

from msx_core.safe_yaml import MOST_BYTES


class SecretFileError(Exception):
    """The file cannot be used; the message names it, and shows nothing of it."""


class FileContent(NamedTuple):
    """The content of the file, which is compared to notice a change."""

    data: bytes
    warning: str


def read_secret_file(key: str, path: Path, harm: str) -> FileContent:
    """`key`: the setting that names it; `harm`: what others could do who may write it. Raises SecretFileError."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise SecretFileError(f"{key}: {path} cannot be read: {error.strerror}") from None
    try:
        warning = _checked(key, path, fd, harm)
        data = _read(fd)
    except OSError as error:
        raise SecretFileError(f"{key}: {path} cannot be read: {error.strerror}") from None
    finally:
        os.close(fd)
    if len(data) > MOST_BYTES:
        raise SecretFileError(f"{key}: {path} has more than {MOST_BYTES >> 20} MiB")
    return FileContent(data=data, warning=warning)


def _checked(key: str, path: Path, fd: int, harm: str) -> str:
    """A warning about the permissions of the file, or ""."""
    found = os.fstat(fd)
    mode = f"its mode is {stat.S_IMODE(found.st_mode):04o}"
    if not stat.S_ISREG(found.st_mode):
        raise SecretFileError(f"{key}: {path} is not a file: name the file that holds the keys")
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise SecretFileError(f"{key}: users other than its owner may write {path} ({mode}), {harm}: chmod go-w {path}")
    if found.st_mode & stat.S_IROTH and not os.fstatvfs(fd).f_flag & os.ST_RDONLY:
        return f"{key}: every user of this machine may read {path} ({mode}): chmod o-r {path}"
    return ""


def _read(fd: int) -> bytes:
    """Read one byte more than the limit at most."""
    data = b""
    while len(data) <= MOST_BYTES and (piece := os.read(fd, MOST_BYTES + 1 - len(data))):
        data += piece
    return data
