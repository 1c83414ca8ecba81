"""Media types, JSON in all its spellings, and what is said of what is not JSON."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from msx_core.bodies import fault, json_value, lenient, media_type, read_json, says_json, strict
from msx_sdk import InvalidInput

JSON_TYPES = [
    "application/json",
    "application/json; charset=utf-8",
    "Application/JSON",
    "application/problem+json",
    "application/vnd.api+JSON;v=1",
]
OTHER_TYPES = ["application/jsonl", "json", "application/json5", "text/json", "image/png", "application/octet-stream"]


@pytest.mark.parametrize("stated", JSON_TYPES)
def test_every_spelling_of_json(stated: str) -> None:
    assert says_json(stated)
    assert strict("body", b"[1, 2]", stated) == [1, 2]
    with pytest.raises(
        InvalidInput, match=r"^body \(.*\) is not valid JSON: line 1, column 9: expecting ',' delimiter$"
    ):
        strict("body", b"[[0.1,2]", stated)


@pytest.mark.parametrize("stated", OTHER_TYPES)
def test_other_types_are_not_json(stated: str) -> None:
    assert not says_json(stated)


def test_a_media_type_has_no_parameters_and_no_case() -> None:
    assert media_type("Text/HTML ;charset=utf-8") == "text/html"


@pytest.mark.parametrize(
    ("data", "stated"), [(b"[1", "image/png"), (b"[1", None), (b"[1", ""), (b"\xff", "text/plain")]
)
def test_strict_leaves_what_says_something_else_to_torchserves_rule(data: bytes, stated: str | None) -> None:
    value = strict("body", data, stated)
    assert type(value) is bytearray
    assert value == lenient(data, stated) == data


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"", "it is empty"),
        (b" \n", "it is empty"),
        (b"{", "line 1, column 2: expecting property name enclosed in double quotes"),
        (b'{"a": 1,\n "b": }', "line 2, column 7: expecting value"),
        (b"[1] 2", "line 1, column 5: extra data"),
        (b'["\n\xff"]', "line 2, column 1: a byte that is not utf-8"),
        (b"[" * 100_000, "it is nested too deeply"),
    ],
)
def test_what_is_wrong_and_where(data: bytes, sentence: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read_json("body", data)
    assert refused.value.message == f"body is not valid JSON: {sentence}"


@pytest.mark.parametrize(
    ("text", "column"),
    [
        (r'{"id": "\ud800"}', 9),
        (r'{"id": "\uDC00"}', 9),
        (r'{"\ud83d\ud83d\ude00": 1}', 3),
        (r'["\ud83d\ude00\ude00"]', 15),
        (r'["\\\ud800"]', 3),
        (r'[NaN, "\ud800x"]', 8),
    ],
)
def test_half_of_a_surrogate_pair(text: str, column: int) -> None:
    """Python's JSON has it; where replies repeat texts, it is refused."""
    assert json_value(text.encode())
    for data in (text.encode(), text.encode("utf-16")):
        with pytest.raises(ValueError, match=r"malformed|truncated"):
            json_value(data, halves=False)
    sentence = f"line 1, column {column}: half of a surrogate pair, which is not a character"
    assert fault(text.encode(), msgspec.DecodeError("Input data was truncated")) == sentence


@pytest.mark.parametrize(
    "error",
    [
        UnicodeDecodeError("utf-8", b"a\xff", 1, 2, "invalid start byte"),
        msgspec.DecodeError("Invalid UTF-8 encoded string"),  # since 0.23
    ],
)
def test_a_byte_of_no_text_is_named_whatever_msgspec_says(error: Exception) -> None:
    assert fault(b'{"a\xff": 1}', error) == "line 1, column 4: a byte that is not utf-8"


@pytest.mark.parametrize("text", [r'["\ud83d\ude00"]', r'["\\ud800", NaN]', r'["\uD83D\uDE00\uD83D\uDE00", NaN]'])
def test_whole_pairs_and_escaped_backslashes_are_no_halves(text: str) -> None:
    assert json_value(text.encode(), halves=False)


@pytest.mark.parametrize(
    ("data", "value"), [(b"[NaN]", "[nan]"), ("[1]".encode("utf-16"), "[1]"), (b"\xef\xbb\xbf[1]", "[1]")]
)
def test_what_pythons_and_windows_clients_send(data: bytes, value: Any) -> None:
    assert str(read_json("body", data)) == value
