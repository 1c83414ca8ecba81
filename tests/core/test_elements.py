"""Elements are counted before any of them is made; never fewer than there are, and what is allowed is never refused."""

from __future__ import annotations

import tracemalloc
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from msx_core import elements
from msx_core.bodies import strict
from msx_core.elements import DEFAULT, TooManyElements, check_json, check_msgpack, limit_to
from msx_core.generation.plain import request_of_item
from msx_core.packed import PACKED
from msx_core.typed.codec import Codec, Misfit, codec_of
from msx_sdk.errors import InvalidInput
from msx_sdk.generation import Capabilities

NUMBERS = (
    st.integers(-(1 << 63), (1 << 64) - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.booleans()
    | st.none()
)
TEXTS = st.text('ab"\\[{é', max_size=40)
VALUES = st.recursive(
    NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(TEXTS, inner, max_size=6),
    max_leaves=40,
)
PACKED_VALUES = st.recursive(
    NUMBERS
    | TEXTS
    | st.binary(max_size=300)
    | st.builds(msgspec.msgpack.Ext, st.integers(2, 100), st.binary(max_size=300)),
    lambda inner: st.lists(inner, max_size=20) | st.dictionaries(TEXTS | st.integers(0, 9), inner, max_size=20),
    max_leaves=60,
)


def count(value: Any) -> int:
    """Texts, keys, lists, objects, bytes and extensions."""
    if isinstance(value, dict):
        return 1 + sum(count(key) + count(inner) for key, inner in value.items())
    if isinstance(value, list):
        return 1 + sum(map(count, value))
    return int(isinstance(value, (str, bytes, msgspec.msgpack.Ext)))


@given(VALUES)
def test_json(value: Any) -> None:
    for data in (msgspec.json.encode(value), bytearray(msgspec.json.format(msgspec.json.encode(value)))):
        check_json(data, count(value))
        if (most := count(value) - 1) >= 0:
            with pytest.raises(
                TooManyElements, match=f"more than {most} texts, lists and objects; max_request_elements"
            ):
                check_json(data, most)


@given(PACKED_VALUES)
def test_messagepack(value: Any) -> None:
    data = msgspec.msgpack.encode(value)
    check_msgpack(data, count(value))
    if (most := count(value) - 1) >= 0:
        with pytest.raises(TooManyElements):
            check_msgpack(memoryview(data), most)


@given(st.binary(max_size=200))
def test_what_is_neither_is_left_to_its_reader(data: bytes) -> None:
    for check in (check_json, check_msgpack):
        check(data, len(data))


def test_numbers_are_bounded_by_their_bytes() -> None:
    """A picture of 640 × 640 × 3 as JSON stays legal."""
    check_json(b"[" + b",".join([b"255"] * 1_228_800) + b"]")
    check_msgpack(b"\xdd" + (6_000_000).to_bytes(4, "big") + b"\x01" * 6_000_000)


@dataclass
class Query:
    x: Any


@dataclass
class Words:
    x: list[str]


OBJECTS = b"\x81\xa1x\xdd" + (300_000).to_bytes(4, "big") + b"\x81\x00\x90" * 300_000
LISTS = b'{"x":[' + b",".join([b"[]"] * 510_000) + b"]}"
TEXT_LIST = b'{"x":["' + b'","'.join([b"ab"] * 510_000) + b'"]}'
SAID = "it has more than 500000 texts, lists and objects; max_request_elements of the server's config.properties"


def refused(codec: Codec, data: bytes, form: str) -> int:
    """Bytes that it takes to refuse the data."""
    tracemalloc.start()
    with pytest.raises(Misfit, match=SAID):
        codec.from_msgpack(data) if form == "msgpack" else codec.from_json(data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


@pytest.mark.parametrize(
    ("kind", "data", "form"),
    [(Query, OBJECTS, "msgpack"), (Query, LISTS, "json"), (Words, TEXT_LIST, "json"), (Query, TEXT_LIST, "json")],
)
def test_typed_requests(kind: type, data: bytes, form: str) -> None:
    """MessagePack of 6.4 MB became 637 MB."""
    assert refused(codec_of(kind, "f"), data, form) < 4 * len(data)


def test_bodies_and_packed_values() -> None:
    with pytest.raises(InvalidInput, match=rf"^body \(application/json\): {SAID}"):
        strict("body", LISTS, "application/json")
    with pytest.raises(InvalidInput, match=f"^body: {SAID}"):
        strict("body", OBJECTS, PACKED)


def test_plain_predictions_of_texts() -> None:
    with pytest.raises(InvalidInput, match=SAID):
        request_of_item({"body": LISTS}, Capabilities(generate=True))


def test_the_bound_of_the_process() -> None:
    limit_to(2)
    try:
        check_json(b'["a"]')
        with pytest.raises(TooManyElements, match="more than 2 "):
            check_json(b'["a","b"]')
    finally:
        limit_to(DEFAULT)


@given(st.text('"a', max_size=30).map(str.encode), st.integers(0, 5))
def test_rare_signs_are_found_and_others_counted(data: bytes, few: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(elements, "FEW", few)
        assert elements._count(data, b'"') == data.count(b'"')
