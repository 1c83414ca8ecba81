"""Values between processes of one model: MessagePack, with arrays and texts as they are.

An array is the extension type 1: the length of its type's name (1 byte), the name as NumPy has it, the number of its
dimensions (1 byte), each size (8 bytes), then its numbers in C order. All of it is little-endian. The server reads and
writes such values without NumPy, as `Tensor`; workers as arrays.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable
from math import prod
from typing import Any

import msgspec

PACKED = "application/x-msx-packed"
"""The content type of a field whose bytes are such a value."""

TENSOR = 1
"""The code of the extension type."""

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


def pack(value: Any) -> bytes:
    """Raises TypeError for what has no form here, ValueError for an array of such a type."""
    return _encoder.encode(value)


def unpack(data: Buffer, make: Callable[[Tensor], Any] | None = None) -> Any:
    """`make` gets each array as a Tensor; without it the value has NumPy arrays, which belong to the caller.

    Raises InvalidPacked.
    """
    if make is None:
        return _decoded(_to_arrays, data)
    return _decoded(msgspec.msgpack.Decoder(ext_hook=_hook(make)), data)


def as_array(tensor: Tensor) -> Any:
    """A NumPy array that can be written."""
    import numpy as np

    return np.frombuffer(tensor.data, tensor.dtype).reshape(tensor.shape).copy()


def _decoded(decoder: msgspec.msgpack.Decoder[Any], data: Buffer) -> Any:
    try:
        return decoder.decode(data)
    except RecursionError:
        raise InvalidPacked("it is nested too deeply") from None
    except msgspec.DecodeError as error:
        raise InvalidPacked(str(error)) from None


def _hook(make: Callable[[Tensor], Any]) -> Callable[[int, memoryview], Any]:
    def read(code: int, data: memoryview) -> Any:
        if code != TENSOR:
            raise InvalidPacked(f"extension type {code} is not known: {TENSOR}, an array, is the only one")
        return make(_tensor(data))

    return read


def _tensor(data: memoryview) -> Tensor:
    """Raises InvalidPacked."""
    try:
        name_end = 1 + data[0]
        dtype = bytes(data[1:name_end]).decode("ascii")
        dimensions = data[name_end]
        shape = struct.unpack_from(f"<{dimensions}Q", data, name_end + 1)
    except (IndexError, struct.error, UnicodeDecodeError):
        raise InvalidPacked("an array's head is incomplete") from None
    if dtype not in SIZES or dimensions > MOST_DIMENSIONS:
        raise InvalidPacked(f"an array of type {dtype[:20]!r} with {dimensions} dimensions is not known")
    numbers = data[name_end + 1 + 8 * dimensions :]
    if len(numbers) != (wanted := prod(shape) * SIZES[dtype]):
        raise InvalidPacked(f"an array of {dtype} and shape {list(shape)} has {len(numbers)} bytes, not {wanted}")
    return Tensor(dtype, shape, numbers)


def _extension(value: Any) -> Any:
    if isinstance(value, Tensor):
        return _ext(value.dtype, value.shape, value.data)
    if hasattr(value, "asnumpy"):
        value = value.asnumpy()
    numpy = sys.modules.get("numpy")
    if numpy is None or not isinstance(value, numpy.ndarray | numpy.generic):
        raise TypeError(f"{type(value).__name__} cannot be sent: use numbers, texts, bytes, lists, dicts or arrays")
    dtype = value.dtype.name
    if dtype not in SIZES:
        raise ValueError(f"an array of {dtype} cannot be sent: use one of {', '.join(SIZES)}")
    plain = numpy.ascontiguousarray(value, value.dtype.newbyteorder("<")).reshape(-1)
    return _ext(dtype, value.shape, memoryview(plain).cast("B") if plain.size else b"")


def _ext(dtype: str, shape: tuple[int, ...], data: Buffer) -> msgspec.msgpack.Ext:
    name = dtype.encode()
    head = struct.pack(f"<B{len(name)}sB{len(shape)}Q", len(name), name, len(shape), *shape)
    return msgspec.msgpack.Ext(TENSOR, b"".join((head, data)))


_encoder = msgspec.msgpack.Encoder(enc_hook=_extension)
_to_arrays = msgspec.msgpack.Decoder(ext_hook=_hook(as_array))
