"""`api_keys_file`: the keys of the operator. Each read opens the file by name, because a link may have changed."""

import os
import re
import stat
from pathlib import Path
from typing import NamedTuple

from msx_core.safe_yaml import MOST_BYTES, parse_yaml
from msx_core.start_errors import StartError
from msx_core.values import ConfigError
from msx_frontend.keys.entry import read_entry
from msx_frontend.keys.key import Key

MOST_KEYS = 1000


class KeysFileError(StartError):
    """The keys file cannot be used; the message names it, and shows no key."""


class KeysFileContent(NamedTuple):
    """The content of the file, which is compared to notice a change."""

    data: bytes
    warning: str


def read_content(path: Path) -> KeysFileContent:
    """Raises KeysFileError, also for a file that others may write."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise KeysFileError(f"api_keys_file: {path} cannot be read: {error.strerror}") from None
    try:
        warning = _checked(path, fd)
        data = _read(fd)
    except OSError as error:
        raise KeysFileError(f"api_keys_file: {path} cannot be read: {error.strerror}") from None
    finally:
        os.close(fd)
    if len(data) > MOST_BYTES:
        raise KeysFileError(f"api_keys_file: {path} has more than {MOST_BYTES >> 20} MiB")
    return KeysFileContent(data=data, warning=warning)


def parse(path: Path, data: bytes) -> tuple[list[Key], list[str]]:
    """The keys, and the names of those that are too short. Raises KeysFileError."""
    try:
        return _keys(_entries(data))
    except ConfigError as error:
        raise KeysFileError(f"api_keys_file: {path}: {error}") from None


def _checked(path: Path, fd: int) -> str:
    """A warning about the permissions of the file, or ""."""
    found = os.fstat(fd)
    mode = f"its mode is {stat.S_IMODE(found.st_mode):04o}"
    if not stat.S_ISREG(found.st_mode):
        raise KeysFileError(f"api_keys_file: {path} is not a file: name the file that holds the keys")
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise KeysFileError(
            f"api_keys_file: users other than its owner may write {path} ({mode}), and so open the server: "
            f"chmod go-w {path}"
        )
    if found.st_mode & stat.S_IROTH and not os.fstatvfs(fd).f_flag & os.ST_RDONLY:
        return f"api_keys_file: every user of this machine may read {path} ({mode}): chmod o-r {path}"
    return ""


def _read(fd: int) -> bytes:
    """Read one byte more than the limit at most."""
    data = b""
    while len(data) <= MOST_BYTES and (piece := os.read(fd, MOST_BYTES + 1 - len(data))):
        data += piece
    return data


def _entries(data: bytes) -> list[object]:
    try:
        found = parse_yaml(data)
    except ConfigError as error:  # what it quotes may be a key
        place = re.match(r"line \d+(, column \d+)?(?=:)", str(error))
        raise ConfigError(f"{place[0]}: is not YAML or JSON" if place else "is not YAML or JSON") from None
    entries = found.get("keys") if isinstance(found, dict) and len(found) == 1 else None
    if not isinstance(entries, list):
        raise ConfigError("is not a mapping with the one member keys, a list")
    if len(entries) > MOST_KEYS:
        raise ConfigError(f"has {len(entries)} keys; at most {MOST_KEYS} are allowed")
    return entries


def _keys(entries: list[object]) -> tuple[list[Key], list[str]]:
    names: dict[str, int] = {}
    digests: dict[bytes, str] = {}
    short: list[str] = []
    keys: list[Key] = []
    for number, entry in enumerate(entries, 1):
        key, is_short = read_entry(number, entry)
        if key.name in names:
            raise ConfigError(f"entry {number} has the name of entry {names[key.name]}, {key.name}")
        if key.digest in digests:
            raise ConfigError(f"{digests[key.digest]} and {key.name} have the same key")
        names[key.name], digests[key.digest] = number, key.name
        short += [key.name] if is_short else []
        keys.append(key)
    return keys, short
