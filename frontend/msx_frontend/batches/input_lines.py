"""The lines of a batch's input file: read one by one, and checked before the first of them runs. Blocks."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from msx_frontend.batches.records import Fault

MOST_FAULTS = 100
"""Faults of one file that are told."""
LONGEST_ID = 512
"""Characters of a custom_id."""


class LineRules(NamedTuple):
    """`longest`: bytes of a line (max_request_size); `most` lines (max_batch_lines), with those that are empty."""

    endpoint: str
    longest: int
    most: int


class Line(NamedTuple):
    number: int
    custom_id: str
    body: bytes
    model: str
    """The model that its body names; "" where it names none."""
    streams: bool


class Checked(NamedTuple):
    """How many lines a file has, and what is wrong with them."""

    total: int
    faults: list[Fault]


class WrongLine(Exception):
    def __init__(self, code: str, message: str, param: str | None = None) -> None:
        super().__init__(message)
        self.code, self.param = code, param


class _Row(msgspec.Struct):
    custom_id: str
    url: str
    body: msgspec.Raw
    method: str = "POST"


class _AskedBody(msgspec.Struct):
    model: str | None = None
    stream: bool | None = None


_row, _body, _any = (
    msgspec.json.Decoder(_Row),
    msgspec.json.Decoder(_AskedBody),
    msgspec.json.Decoder(dict[str, msgspec.Raw]),
)


def check_file(path: Path, rules: LineRules, stops: Callable[[], bool]) -> Checked:
    """Read the whole file, or until `stops` says so. Raises OSError."""
    faults: list[Fault] = []
    known: set[bytes] = set()
    total = 0
    for number, data in rows(path, rules.longest):
        if number > rules.most:
            faults.append(Fault("too_many_lines", f"A file has at most {rules.most} lines (max_batch_lines)."))
            break
        if stops():
            return Checked(total, [])
        if not data:
            continue
        total += 1
        try:
            _check_new(line_of(number, data, rules), known)
        except WrongLine as wrong:
            faults.append(Fault(wrong.code, str(wrong), number, wrong.param))
            if len(faults) >= MOST_FAULTS:
                break
    if not total and not faults:
        faults.append(Fault("empty_file", "The file has no lines."))
    return Checked(total, faults)


def rows(path: Path, longest: int) -> Iterator[tuple[int, bytes]]:
    """The lines with their numbers: of an empty one nothing, of one that is too long as many bytes as tell so."""
    number = 0
    with path.open("rb") as file:
        while data := file.readline(longest + 2):
            number += 1
            whole = data
            while not whole.endswith(b"\n") and (whole := file.readline(1 << 20)):
                pass
            yield number, data.rstrip(b"\r\n") if data.strip() else b""


def line_of(number: int, data: bytes, rules: LineRules) -> Line:
    """Raises WrongLine."""
    if len(data) > rules.longest:
        raise WrongLine("line_too_long", f"The line is longer than {rules.longest} bytes (max_request_size).")
    try:
        row = _row.decode(data)
    except msgspec.ValidationError as error:
        raise WrongLine("invalid_line", f"Expected an object with custom_id, method, url and body: {error}.") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise WrongLine("invalid_json_line", f"The line is no JSON: {error}.") from None
    _check_row(row, rules)
    return _line(number, row)


def _check_row(row: _Row, rules: LineRules) -> None:
    if not 0 < len(row.custom_id) <= LONGEST_ID:
        raise WrongLine("invalid_custom_id", f"Expected 1 to {LONGEST_ID} characters.", "custom_id")
    if row.method.upper() != "POST":
        raise WrongLine("invalid_method", f"Expected POST, not {row.method[:20]!r}.", "method")
    if row.url != rules.endpoint:
        told = f"Expected the batch's endpoint {rules.endpoint}, not {row.url[:100]!r}."
        raise WrongLine("mismatched_endpoint", told, "url")


def _line(number: int, row: _Row) -> Line:
    body = bytes(row.body)
    if not body.startswith(b"{"):
        raise WrongLine("invalid_body", "Expected an object.", "body")
    try:
        asked = _body.decode(body)
    except msgspec.ValidationError:
        asked = _AskedBody()  # the route tells what is wrong, in the reply of this line
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise WrongLine("invalid_json_line", f"The line is no JSON: {error}.", "body") from None
    return Line(number, row.custom_id, body, asked.model or "", bool(asked.stream))


def _check_new(line: Line, known: set[bytes]) -> None:
    if (digest := digest_of(line.custom_id)) in known:
        told = f"The custom_id {line.custom_id[:100]!r} stands in an earlier line, too."
        raise WrongLine("duplicate_custom_id", told, "custom_id")
    known.add(digest)


def digest_of(custom_id: str) -> bytes:
    """Stands for it where many are remembered."""
    return hashlib.blake2b(custom_id.encode("utf-8", "surrogatepass"), digest_size=16).digest()
