"""Types of packed values besides plain ones, and the heads of arrays."""

import struct
from functools import lru_cache
from math import prod

PACKED = "application/x-msx-packed"
"""The content type of a field whose bytes are such a value."""

TENSOR, TEXT, BYTES = 1, 3, 4
"""The codes of the extension types; `references` has 2."""

SIZES = {
    "bool": 1,
    "int8": 1,
    "uint8": 1,
    "int16": 2,
    "uint16": 2,
    "int32": 4,
    "uint32": 4,
    "int64": 8,
    "uint64": 8,
    "float16": 2,
    "float32": 4,
    "float64": 8,
}
"""Bytes of one number, by the names of types."""

MOST_DIMENSIONS = 32

MOST_EMPTY = 1 << 16
"""The most rows of an array without numbers: they take no bytes on the wire, but a list each where they are listed."""

Buffer = bytes | bytearray | memoryview


class InvalidPacked(ValueError):
    """Bytes that are not such a value; the message says what is wrong."""


class Tensor:
    """`data` holds the numbers in C order, little-endian. `shape` () is a scalar.

    Neither a tuple nor a dataclass: `pack` would take it for a list or a map.
    """

    __slots__ = ("data", "dtype", "shape")

    def __init__(self, dtype: str, shape: tuple[int, ...], data: Buffer) -> None:
        self.dtype, self.shape, self.data = dtype, shape, data

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tensor) and self._parts == other._parts

    def __hash__(self) -> int:
        return hash(self._parts)

    def __repr__(self) -> str:
        return f"Tensor({self.dtype}, {list(self.shape)})"

    @property
    def _parts(self) -> tuple[str, tuple[int, ...], bytes]:
        return self.dtype, self.shape, bytes(self.data)


class OneText(str):
    """A text of shape [1]. Handlers see a text; one that returns it as it is returns the shape, too."""

    __slots__ = ()


class OneBytes(bytes):
    """Bytes of shape [1]."""

    __slots__ = ()


@lru_cache(maxsize=1000)
def known_head(data: bytes) -> tuple[str, tuple[int, ...], int]:
    """Type, shape and bytes of an array; the same heads come again and again. Raises InvalidPacked."""
    try:
        name_end = 1 + data[0]
        dtype = data[1:name_end].decode("ascii")
        dimensions = data[name_end]
        shape = struct.unpack_from(f"<{dimensions}Q", data, name_end + 1)
    except (IndexError, struct.error, UnicodeDecodeError):
        raise incomplete() from None
    if dtype not in SIZES or dimensions > MOST_DIMENSIONS:
        raise InvalidPacked(f"an array of type {dtype[:20]!r} with {dimensions} dimensions is not known")
    size = prod(shape) * SIZES[dtype]
    if not size and 0 in shape and prod(shape[: shape.index(0)]) > MOST_EMPTY:
        raise InvalidPacked(f"an array of shape {list(shape)} has more than {MOST_EMPTY} rows without numbers")
    return dtype, shape, size


def incomplete() -> InvalidPacked:
    return InvalidPacked("an array's head is incomplete")


def wrong_size(dtype: str, shape: tuple[int, ...], size: int) -> InvalidPacked:
    wanted = prod(shape) * SIZES[dtype]
    return InvalidPacked(f"an array of {dtype} and shape {list(shape)} has {size} bytes, not {wanted}")


@lru_cache(maxsize=1000)
def head_bytes(dtype: str, shape: tuple[int, ...]) -> bytes:
    name = dtype.encode()
    return struct.pack(f"<B{len(name)}sB{len(shape)}Q", len(name), name, len(shape), *shape)
