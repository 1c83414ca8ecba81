from __future__ import annotations

import math
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

np = pytest.importorskip("numpy")

from msx_core.kserve.tensors import DTYPES, datatype_of, from_contents, from_raw, to_raw  # noqa: E402
from msx_core.kserve.types import BYTES, DATATYPES, ITEM_SIZES  # noqa: E402
from msx_net.grpc.messages import message_class  # noqa: E402
from msx_sdk import InvalidInput  # noqa: E402
from tests.core.kserve.messages import same  # noqa: E402

NUMERIC = [name for name in ITEM_SIZES if name != "BF16"]
shapes = st.lists(st.integers(0, 4), max_size=4)


@given(st.sampled_from(NUMERIC), shapes, st.data())
def test_round_trip_of_numbers(datatype: str, shape: list[int], data: st.DataObject) -> None:
    size = math.prod(shape) * ITEM_SIZES[datatype]
    raw = data.draw(st.binary(min_size=size, max_size=size))
    raw = bytes(byte & 1 for byte in raw) if datatype == "BOOL" else raw
    array = from_raw("x", datatype, shape, memoryview(raw))
    assert (array.dtype, list(array.shape)) == (DTYPES[datatype], shape)
    assert to_raw(array, datatype) == raw
    assert datatype_of(array) == datatype


@given(st.lists(st.binary(max_size=9)))
def test_round_trip_of_bytes(values: list[bytes]) -> None:
    raw = b"".join(struct.pack("<I", len(value)) + value for value in values)
    array = from_raw("x", BYTES, [len(values)], memoryview(raw))
    assert array.tolist() == values
    assert to_raw(array, BYTES) == raw


@given(st.lists(st.integers(0, 0xFFFF)))
def test_bfloat16_is_float32_to_a_handler(bits: list[int]) -> None:
    raw = struct.pack(f"<{len(bits)}H", *bits)
    array = from_raw("x", "BF16", [len(bits)], memoryview(raw))
    assert array.dtype == np.float32
    again = from_raw("x", "BF16", [len(bits)], memoryview(to_raw(array, "BF16")))
    assert same(array, again)


def test_bfloat16_rounds_to_the_nearest_even_value() -> None:
    array = np.array([1.0, 1 + 2**-8, 1 + 3 * 2**-8, -1 - 2**-9, np.inf, np.nan], np.float32)
    rounded = from_raw("x", "BF16", [6], memoryview(to_raw(array, "BF16")))
    assert same(rounded, np.array([1.0, 1.0, 1 + 2**-6, -1.0, np.inf, np.nan], np.float32))


def test_an_array_is_aligned_wherever_its_bytes_begin() -> None:
    array = from_raw("x", "FP64", [1], memoryview(b"." + struct.pack("<d", 1.5))[1:])
    assert array.flags.aligned
    assert array.tolist() == [1.5]


def test_text_of_numpy_is_bytes() -> None:
    assert to_raw(np.array(["é"]), BYTES) == b"\x02\0\0\0" + "é".encode()
    assert datatype_of(np.array(["é"])) == BYTES
    assert datatype_of(np.array([1j])) is None


CONTENTS = message_class("inference.InferTensorContents")
MEMBERS: dict[str, tuple[str, Any]] = {
    "BOOL": ("bool_contents", st.booleans()),
    "INT8": ("int_contents", st.integers(-(2**7), 2**7 - 1)),
    "INT16": ("int_contents", st.integers(-(2**15), 2**15 - 1)),
    "INT32": ("int_contents", st.integers(-(2**31), 2**31 - 1)),
    "INT64": ("int64_contents", st.integers(-(2**63), 2**63 - 1)),
    "UINT8": ("uint_contents", st.integers(0, 2**8 - 1)),
    "UINT16": ("uint_contents", st.integers(0, 2**16 - 1)),
    "UINT32": ("uint_contents", st.integers(0, 2**32 - 1)),
    "UINT64": ("uint64_contents", st.integers(0, 2**64 - 1)),
    "FP32": ("fp32_contents", st.floats(width=32, allow_nan=False)),
    "FP64": ("fp64_contents", st.floats(allow_nan=False)),
    "BYTES": ("bytes_contents", st.binary(max_size=5)),
}


@given(st.sampled_from(sorted(MEMBERS)), st.data())
def test_typed_contents_of_grpc(datatype: str, data: st.DataObject) -> None:
    member, values = MEMBERS[datatype]
    wanted = data.draw(st.lists(values, max_size=20))
    raw = CONTENTS(**{member: wanted}).SerializeToString()
    array = from_contents("x", datatype, [len(wanted)], memoryview(raw))
    assert array.dtype == DTYPES[datatype]
    assert array.tolist() == wanted


@pytest.mark.parametrize(
    ("datatype", "shape", "contents", "message"),
    [
        ("INT8", [1], {"int_contents": [128]}, "x: INT8 values are from -128 to 127"),
        ("INT8", [2], {"int_contents": [1]}, r"x: shape \[2\] takes 2 values, not 1"),
        ("FP32", [1], {"fp64_contents": [1]}, "x: FP32 values belong in fp32_contents, not in fp64_contents"),
        ("FP16", [1], {"fp32_contents": [1]}, "x: FP16 values travel in raw_input_contents only"),
    ],
)
def test_contents_that_are_wrong(datatype: str, shape: list[int], contents: Any, message: str) -> None:
    raw = CONTENTS(**contents).SerializeToString()
    with pytest.raises(InvalidInput, match=message):
        from_contents("x", datatype, shape, memoryview(raw))


@pytest.mark.parametrize(
    ("datatype", "shape", "raw", "message"),
    [
        ("FP32", [2, 3], b"1234", r"x: FP32 of shape \[2, 3\] takes 24 bytes, not 4"),
        (BYTES, [1], b"\x05\0\0\0ab", "x: a BYTES value claims 5 bytes, but only 2 are left"),
        (BYTES, [1], b"ab", "x: 2 bytes are left over where the length of a BYTES value begins"),
        (BYTES, [2], b"\0\0\0\0", r"x: shape \[2\] takes 2 values, not 1"),
        ("INT8", [0, 2**62, 2**62], b"", "x: no array has shape"),
        ("INT8", [0] * 100, b"", "x: no array has shape"),
    ],
)
def test_bytes_that_are_wrong(datatype: str, shape: list[int], raw: bytes, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        from_raw("x", datatype, shape, memoryview(raw))


@given(st.sampled_from(DATATYPES), st.lists(st.integers(0, 2**70), max_size=5), st.binary(max_size=50))
def test_anything_is_a_tensor_or_refused(datatype: str, shape: list[int], raw: bytes) -> None:
    for decode in (from_raw, from_contents):
        try:
            array = decode("x", datatype, shape, memoryview(raw))
        except InvalidInput:
            continue
        assert list(array.shape) == shape
