"""Values between processes."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from msx_core.packed import TENSOR, InvalidPacked, OneBytes, OneText, Tensor, pack, unpack, unpack_tensors

FLOATS = Tensor("float32", (2,), b"\0\0\x80?\0\0\0@")


def test_plain_values_and_tensors_come_back() -> None:
    value = {"x": FLOATS, "text": "ä", "raw": b"\0", "list": [1, 2.5, True, None]}
    assert unpack(pack(value), lambda tensor: tensor) == unpack_tensors(pack(value)) == value


class Word(str):
    __slots__ = ()


@pytest.mark.parametrize("value", [OneText("ä"), OneText(""), OneBytes(b"\0"), OneBytes()])
def test_a_text_and_bytes_of_one_element_stay_such(value: Any) -> None:
    found = unpack(pack({"x": value}))["x"]
    assert (type(found), found) == (type(value), value)


def test_texts_of_other_classes_are_texts() -> None:
    assert unpack(pack(Word("a"))) == "a"


@pytest.mark.mindspore
def test_arrays_come_back_in_c_order_and_little_endian() -> None:
    import numpy as np

    arrays: list[Any] = [
        np.arange(6.0).reshape(2, 3).T,
        np.arange(3, dtype=">i4"),
        np.float16(2.5),
        np.zeros((0, 3)),
        np.bool_(1),
    ]
    found = unpack(pack(arrays))
    for array, other in zip(arrays, found, strict=True):
        assert other.dtype.name == array.dtype.name
        assert other.shape == array.shape
        assert np.array_equal(other, array)
        assert other.flags.writeable


def _tensor(payload: bytes) -> bytes:
    return msgspec.msgpack.encode(msgspec.msgpack.Ext(TENSOR, payload))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\xd4\x05\x00", "extension type 5 is not known"),
        (b"\xd4\x03\xff", "a text is not UTF-8"),
        (_tensor(b"\x07flo"), "head is incomplete"),
        (_tensor(b"\x03abc\x00"), "'abc' with 0 dimensions is not known"),
        (_tensor(b"\x05uint8\x21" + bytes(8 * 33)), "33 dimensions"),
        (_tensor(b"\x05uint8\x01\x02\0\0\0\0\0\0\0a"), "has 1 bytes, not 2"),
        (_tensor(b"\x05uint8\x02" + b"\xff" * 16), "bytes, not"),
        (_tensor(b"\x05uint8\x02" + b"\0\0\0\0\1\0\0\0" + bytes(8)), "more than 65536 rows without numbers"),
        (_tensor(b"\x05uint8\x02" + bytes(8) + b"\xff" * 8), "is too large"),
        (b"\x81", "truncated"),
        (b"\x91" * 100_000, "nested too deeply"),
    ],
)
def test_what_is_not_such_a_value_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(InvalidPacked, match=message):
        unpack(data)


@pytest.mark.parametrize("value", [object(), 1j])
def test_a_value_without_a_form_is_named(value: Any) -> None:
    with pytest.raises(TypeError, match=type(value).__name__):
        pack(value)
