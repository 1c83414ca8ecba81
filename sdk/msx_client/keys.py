"""The keys that open a server: given, in the environment, or in the key file that the server has written."""

import json
import os
from pathlib import Path

from msx_client.address import Part

KEY, MANAGEMENT_KEY, KEY_FILE = "MSX_KEY", "MSX_MANAGEMENT_KEY", "MSX_KEY_FILE"
"""Environment variables."""
DEFAULT_FILE = "key_file.json"
LARGEST_FILE = 1 << 20


class Keys:
    """The first of: `key` and `management_key`; `key_file`; the variables MSX_KEY, MSX_MANAGEMENT_KEY; MSX_KEY_FILE;
    `key_file.json` in the current folder. Without one nothing is sent, for servers that ask for none.
    """

    def __init__(self, key: str | None, management_key: str | None, key_file: str | os.PathLike[str] | None) -> None:
        """Raises OSError or ValueError for a key file that was named and cannot be used."""
        self._given: dict[Part, str | None] = {"inference": key, "management": management_key}
        self._file = Path(key_file) if key_file else None
        if self._file is None and not (key or management_key):
            self._given = {"inference": os.environ.get(KEY), "management": os.environ.get(MANAGEMENT_KEY)}
            self._file = _file_of_environment() if not any(self._given.values()) else None
        self._read: dict[Part, str] = {} if self._file is None else read_key_file(self._file)

    def of(self, part: Part) -> str | None:
        return self._given[part] or self._read.get(part)

    def renew(self, part: Part) -> bool:
        """Read the file again, whose keys expire; returns whether it has another key now."""
        old = self.of(part)
        if self._file is not None:
            try:
                self._read = read_key_file(self._file)
            except (OSError, ValueError):
                return False
        return self.of(part) != old


def read_key_file(path: Path) -> dict[Part, str]:
    """Raises OSError, ValueError."""
    with path.open("rb") as file:
        content = file.read(LARGEST_FILE + 1)
    try:
        if len(content) > LARGEST_FILE:
            raise ValueError("it is too large")
        keys = json.loads(content)
        found: dict[Part, str] = {"inference": keys["inference"]["key"], "management": keys["management"]["key"]}
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path} is not a key file of a server: {error}.") from None
    return found


def _file_of_environment() -> Path | None:
    if named := os.environ.get(KEY_FILE):
        return Path(named)
    return Path(DEFAULT_FILE) if Path(DEFAULT_FILE).is_file() else None
