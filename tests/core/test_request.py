from __future__ import annotations

import math
from typing import Any

import pytest

from msx_sdk.request import Headers, InferenceRequest, Part


def decoded(data: bytes, content_type: str | None) -> Any:
    return InferenceRequest("r", {"body": Part(data, content_type)}).data()["body"]


@pytest.mark.parametrize(
    ("data", "content_type", "value"),
    [
        (b'{"a": [1, 2.5, null]}', "application/json", {"a": [1, 2.5, None]}),
        (b"[1]", "application/json; charset=utf-8", [1]),
        (b"Infinity", "application/json", math.inf),
        (b"123456789012345678901234567890", "application/json", 123456789012345678901234567890),
        ("é".encode(), "text/plain", "é"),
        (b"a,b", "text/csv; header=absent", "a,b"),
        (b"<p>", "text", "<p>"),
    ],
)
def test_json_and_text_are_decoded(data: bytes, content_type: str, value: Any) -> None:
    assert decoded(data, content_type) == value


@pytest.mark.parametrize(
    ("data", "content_type"),
    [
        (b"\x00\xff", None),
        (b"{}", "Application/JSON"),  # TorchServe compares with case
        (b"{}", "application/vnd.api+json"),
        (b"\x89PNG", "image/png"),
        (b"{not json", "application/json"),
        (b"", "application/json"),
        (b"[" * 100_000, "application/json"),
        (b"\xff\xfe\xfd", "text/plain"),
    ],
)
def test_everything_else_is_a_bytearray(data: bytes, content_type: str | None) -> None:
    value = decoded(data, content_type)
    assert type(value) is bytearray
    assert value == data


def test_decoding_can_be_switched_off() -> None:
    request = InferenceRequest("r", {"body": Part(b"[1]", "application/json")})
    assert request.data(decode=False) == {"body": bytearray(b"[1]")}


def test_one_key_per_field() -> None:
    parts = {f"f{n}": Part(str(n).encode(), "text/plain") for n in range(500)}
    assert InferenceRequest("r", parts).data() == {f"f{n}": str(n) for n in range(500)}


def test_given_data_is_not_decoded_and_not_shared() -> None:
    request = InferenceRequest.of_data("r", {"x": 1})
    request.data()["x"] = 2
    assert request.data() == {"x": 1}


def test_headers_are_found_in_any_case_and_keep_their_own() -> None:
    headers = Headers([("X-Token", "secret"), ("Accept", "*/*")])
    assert headers["x-token"] == headers["X-TOKEN"] == headers.get("X-Token") == "secret"
    assert "x-TOKEN" in headers
    assert list(headers) == ["X-Token", "Accept"]
    assert headers.get("absent") is None
    assert headers.get("absent", "-") == "-"
    assert "absent" not in headers
    with pytest.raises(KeyError, match="absent"):
        headers["absent"]


def test_of_two_headers_of_one_name_the_last_counts_as_in_torchserve() -> None:
    assert Headers([("X-Hop", "a"), ("X-Hop", "b")]) == {"X-Hop": "b"}


def test_headers_are_made_once_and_only_for_who_asks() -> None:
    made: list[Headers] = []

    def make() -> Headers:
        made.append(Headers({"X-A": "1"}))
        return made[-1]

    request = InferenceRequest("r", {}, make)
    assert request.data() == {}
    assert made == []
    assert request.headers is request.headers
    assert request.headers["x-a"] == "1"
    assert len(made) == 1
