"""`api_keys_file`: the keys of the operator. Each read opens the file by name, because a link may have changed."""

import re
from pathlib import Path

from msx_core.safe_yaml import parse_yaml
from msx_core.start_errors import StartError
from msx_core.values import ConfigError
from msx_frontend.keys.entry import read_entry
from msx_frontend.keys.key import Key
from msx_frontend.keys.secret_file import FileContent, SecretFileError, read_secret_file

MOST_KEYS = 1000


class KeysFileError(StartError):
    """The keys file cannot be used; the message names it, and shows no key."""


def read_content(path: Path) -> FileContent:
    """Raises KeysFileError, also for a file that others may write."""
    try:
        return read_secret_file("api_keys_file", path, "and so open the server")
    except SecretFileError as error:
        raise KeysFileError(str(error)) from None


def parse(path: Path, data: bytes) -> tuple[list[Key], list[str]]:
    """The keys, and the names of those that are too short. Raises KeysFileError."""
    try:
        return _keys(_entries(data))
    except ConfigError as error:
        raise KeysFileError(f"api_keys_file: {path}: {error}") from None


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
