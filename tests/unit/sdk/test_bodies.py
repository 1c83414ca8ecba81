"""Media types, JSON in all its spellings, and what is said of what is not JSON."""

from __future__ import annotations

from typing import Any

import pytest

from msx_sdk import InvalidInput
from msx_sdk._internal.bodies import lenient, media_type, read_json, says_json, strict

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
    ("data", "fault"),
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
def test_what_is_wrong_and_where(data: bytes, fault: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read_json("body", data)
    assert refused.value.message == f"body is not valid JSON: {fault}"


@pytest.mark.parametrize(
    ("data", "value"), [(b"[NaN]", "[nan]"), ("[1]".encode("utf-16"), "[1]"), (b"\xef\xbb\xbf[1]", "[1]")]
)
def test_what_pythons_and_windows_clients_send(data: bytes, value: Any) -> None:
    assert str(read_json("body", data)) == value
