"""Java's `.properties` format, as TorchServe's config.properties uses it.

Follows java.util.Properties.load: `key=value`, `key:value` or `key value`; `#` and `!` start a comment line; a
backslash at the end continues a line, elsewhere it escapes. On top of it, `$$NAME$$` is an environment variable.
"""

import re
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path

MOST_BYTES = 16 << 20
"""The largest file."""

_BLANK = " \t\f"
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_CONTROL = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_KEY = re.compile(r"((?:\\.|[^\\=: \t\f])*)[ \t\f]*[=:]?[ \t\f]*", re.DOTALL)
_VARIABLE = re.compile(r"\$\$(\w+)\$\$")


_SPECIAL = {"\t": r"\t", "\n": r"\n", "\r": r"\r", "\f": r"\f"} | {char: f"\\{char}" for char in "\\=:#!"}


class PropertiesError(ValueError):
    """A file or a value that cannot be read; the message says where."""


def read_properties(path: Path, env: Mapping[str, str]) -> dict[str, str]:
    """The file's keys and values. See `properties_of`."""
    return properties_of(path, read_file(path), env)


def read_file(path: Path) -> bytes:
    """Raises PropertiesError."""
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except OSError as exc:
        raise PropertiesError(f"{path}: cannot be read: {exc.strerror}") from exc
    if len(data) > MOST_BYTES:
        raise PropertiesError(f"{path}: has more than {MOST_BYTES >> 20} MiB: it is not a config.properties")
    return data


def properties_of(path: Path, data: bytes, env: Mapping[str, str]) -> dict[str, str]:
    """Keys and values in the content of a file, which messages name by `path`; variables are replaced. UTF-8, UTF-16
    with a byte order mark, or Latin-1 as Java has it. Raises PropertiesError."""
    try:
        return {key: expand(key, value, env) for key, value in parse_properties(_text(data)).items()}
    except PropertiesError as exc:
        raise PropertiesError(f"{path}: {exc}") from exc


def _text(data: bytes) -> str:
    try:
        text = data.decode("utf-16" if data.startswith((BOM_UTF16_LE, BOM_UTF16_BE)) else "utf-8-sig")
    except UnicodeDecodeError:
        text = data.decode("latin-1")
    if "\0" in text:
        raise PropertiesError(
            "is not text: it has NUL characters, as UTF-16 without a byte order mark has; save it as UTF-8"
        )
    return text


def parse_properties(text: str) -> dict[str, str]:
    """Parse a properties file; the last value of a key counts, as in Java. Raises PropertiesError."""
    pairs: dict[str, str] = {}
    for number, line in _logical_lines(text):
        match = _KEY.match(line)
        end = match.end() if match else 0
        key = _unescape(match[1] if match else "", number)
        pairs[key] = _unescape(line[end:], number)
    return pairs


def write_properties(pairs: Mapping[str, str], comment: str) -> str:
    """Text as java.util.Properties.store writes it to a Writer, with the keys in order. UTF-8 is the caller's."""
    moment = datetime.now().astimezone().strftime("%a %b %d %H:%M:%S %Z %Y")
    lines = [f"#{comment}", f"#{moment}", *(f"{_escape(key, ' ')}={_escape(pairs[key])}" for key in sorted(pairs))]
    return "\n".join(lines) + "\n"


def expand(key: str, value: str, env: Mapping[str, str]) -> str:
    """`$$NAME$$` replaced by the variable's value. Raises PropertiesError when there is none."""

    def replace(match: re.Match[str]) -> str:
        if match[1] not in env:
            raise PropertiesError(f"{key}: the environment variable {match[1]} of $${match[1]}$$ is not set")
        return env[match[1]]

    return _VARIABLE.sub(replace, value)


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """(number of its first line, text) of each line that holds a pair, continuations joined."""
    pending, start = "", 0
    for number, line in enumerate(re.split(r"\r\n|\r|\n", text), 1):
        part = line.lstrip(_BLANK)
        if not pending and (not part or part[0] in "#!"):
            continue
        start = start or number
        if (len(part) - len(part.rstrip("\\"))) % 2:
            pending += part[:-1]
            continue
        yield start, pending + part
        pending, start = "", 0
    if pending:
        yield start, pending


def _unescape(text: str, number: int) -> str:
    def replace(match: re.Match[str]) -> str:
        if match[1]:
            return chr(int(match[1], 16))
        if match[2] == "u":
            raise PropertiesError(f"line {number}: \\u is not followed by four hexadecimal digits")
        return _CONTROL.get(match[2], match[2])

    return _ESCAPE.sub(replace, text)


def _escape(text: str, also: str = "") -> str:
    """Escapes every blank of a key, and only the first one of a value: other blanks do not separate key and value."""
    escaped = "".join(f"\\{char}" if char in also else _SPECIAL.get(char, char) for char in text)
    return f"\\{escaped}" if escaped.startswith(" ") else escaped
