"""NumPy arrays from the protocol's bytes, and back. Everything on the wire is little-endian and row-major."""

import math
import struct
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from msx_core import protowire as wire
from msx_core.errors import InvalidInput
from msx_core.kserve.types import BYTES, ITEM_SIZES

Array = np.ndarray[Any, Any]

DTYPES = {
    "BOOL": np.dtype("?"), "UINT8": np.dtype("u1"), "UINT16": np.dtype("<u2"), "UINT32": np.dtype("<u4"),
    "UINT64": np.dtype("<u8"), "INT8": np.dtype("i1"), "INT16": np.dtype("<i2"), "INT32": np.dtype("<i4"),
    "INT64": np.dtype("<i8"), "FP16": np.dtype("<f2"), "BF16": np.dtype("<f4"), "FP32": np.dtype("<f4"),
    "FP64": np.dtype("<f8"), BYTES: np.dtype(object),
}  # fmt: skip
"""NumPy types as handlers see them. NumPy does not have bfloat16, so that BF16 becomes float32."""
_DATATYPES = {dtype.newbyteorder("="): name for name, dtype in DTYPES.items() if name != "BF16"}

_LENGTH = struct.Struct("<I")
_CONTENTS = {
    "BOOL": 1, "INT8": 2, "INT16": 2, "INT32": 2, "INT64": 3, "UINT8": 4, "UINT16": 4, "UINT32": 4, "UINT64": 5,
    "FP32": 6, "FP64": 7, BYTES: 8,
}  # fmt: skip
_CONTENTS_NAMES = (
    "", "bool_contents", "int_contents", "int64_contents", "uint_contents", "uint64_contents", "fp32_contents",
    "fp64_contents", "bytes_contents",
)  # fmt: skip


def from_raw(what: str, datatype: str, shape: Sequence[int], data: memoryview) -> Array:
    """`what` begins the message of the InvalidInput that is raised for data of another size."""
    if datatype == BYTES:
        return _shaped(what, shape, _objects(list(_framed(what, data))))
    expected = math.prod(shape) * ITEM_SIZES[datatype]
    if len(data) != expected:
        raise InvalidInput(f"{what}: {datatype} of shape {list(shape)} takes {expected} bytes, not {len(data)}")
    return _shaped(what, shape, _values(datatype, data))


def from_contents(what: str, datatype: str, shape: Sequence[int], data: memoryview) -> Array:
    """Reads gRPC's serialized `InferTensorContents`. Raises InvalidInput for another member or number of values."""
    number = _CONTENTS.get(datatype)
    if number is None:
        raise InvalidInput(f"{what}: {datatype} values travel in raw_input_contents only")
    try:
        pieces = list(_contents(what, datatype, number, data))
        values = _typed(what, datatype, pieces)
    except ValueError as error:
        raise InvalidInput(f"{what}: not the contents of a tensor: {error}") from None
    return _shaped(what, shape, values)


def to_raw(array: Array, datatype: str) -> bytes:
    """`array` is of the data type's own NumPy type (`DTYPES`)."""
    if datatype == BYTES:
        return b"".join(_LENGTH.pack(len(value)) + value for value in map(as_bytes, array.ravel().tolist()))
    if datatype == "BF16":
        array = _bfloat16(array)
    return array.tobytes()


def as_bytes(value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogateescape")


def datatype_of(array: Array) -> str | None:
    """The protocol's data type of an array; None if the protocol does not have one."""
    if array.dtype.kind in "US":
        return BYTES
    return _DATATYPES.get(array.dtype.newbyteorder("="))


def _values(datatype: str, data: memoryview) -> Array:
    if not data:
        return np.empty(0, DTYPES[datatype])
    if datatype == "BOOL":
        flags: Array = np.frombuffer(data, np.uint8) != 0
        return flags
    if datatype == "BF16":
        return (np.frombuffer(data, "<u2").astype("<u4") << 16).view("<f4")
    array = np.frombuffer(data, DTYPES[datatype])
    return array if array.flags.aligned else array.copy()  # users of the memory expect it to be aligned


def _framed(what: str, data: memoryview) -> Iterator[bytes]:
    at = 0
    while at < len(data):
        if len(data) - at < _LENGTH.size:
            raise InvalidInput(f"{what}: {len(data) - at} bytes are left over where the length of a BYTES value begins")
        (size,) = _LENGTH.unpack_from(data, at)
        at += _LENGTH.size
        if size > len(data) - at:
            raise InvalidInput(f"{what}: a BYTES value claims {size} bytes, but only {len(data) - at} are left")
        yield bytes(data[at : at + size])
        at += size


def _contents(what: str, datatype: str, number: int, data: memoryview) -> Iterator[memoryview]:
    for found, span in wire.fields(data, (0, len(data))):
        if found != number:
            got = _CONTENTS_NAMES[found] if found < len(_CONTENTS_NAMES) else f"field {found}"
            raise InvalidInput(f"{what}: {datatype} values belong in {_CONTENTS_NAMES[number]}, not in {got}")
        start, end = wire.as_span(span)
        yield data[start:end]


def _typed(what: str, datatype: str, pieces: list[memoryview]) -> Array:
    if datatype == BYTES:
        return _objects([bytes(piece) for piece in pieces])
    data = memoryview(b"".join(pieces))
    if datatype in ("FP32", "FP64"):
        return _values(datatype, data)
    values = _varints(np.frombuffer(data, np.uint8)) if data else np.empty(0, np.uint64)
    if datatype == "BOOL":
        flags: Array = values != 0
        return flags
    return _fitting(what, datatype, values if datatype.startswith("U") else values.view(np.int64))


def _varints(data: Array) -> Array:
    """Protobuf's packed varints as uint64: seven bits a byte, the last byte of each below 128."""
    ends = np.flatnonzero(data < 0x80)
    starts = np.concatenate([[0], ends[:-1] + 1])
    places = np.arange(len(data)) - np.repeat(starts, ends - starts + 1)
    parts = (data & 0x7F).astype(np.uint64) << (7 * places).astype(np.uint64)
    values: Array = np.add.reduceat(parts, starts)
    return values


def _fitting(what: str, datatype: str, values: Array) -> Array:
    limits: Any = np.iinfo(DTYPES[datatype].name)
    if values.size and (int(values.min()) < limits.min or int(values.max()) > limits.max):
        raise InvalidInput(f"{what}: {datatype} values are from {limits.min} to {limits.max}")
    return values.astype(DTYPES[datatype])


def _objects(values: list[bytes]) -> Array:
    array = np.empty(len(values), object)
    array[:] = values
    return array


def _shaped(what: str, shape: Sequence[int], array: Array) -> Array:
    if array.size != math.prod(shape):
        wanted = f"shape {list(shape)} takes {math.prod(shape)} values"
        raise InvalidInput(f"{what}: {wanted}, not {array.size}")
    try:
        return array.reshape(shape)
    except (ValueError, OverflowError) as error:
        raise InvalidInput(f"{what}: no array has shape {list(shape)[:40]}: {error}") from None


def _bfloat16(array: Array) -> Array:
    """The upper halves of the float32 values, rounded to the nearest even one; NaN stays NaN."""
    bits = np.ascontiguousarray(array, "<f4").view("<u4")
    rounded = (bits + (0x7FFF + ((bits >> 16) & 1))) >> 16
    return np.where(np.isnan(array), 0x7FC0, rounded).astype("<u2")
