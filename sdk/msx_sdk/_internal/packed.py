"""Values between processes of one model: MessagePack, with arrays and texts as they are.

An array is the extension type 1: the length of its type's name (1 byte), the name as NumPy has it, the number of its
dimensions (1 byte), each size (8 bytes), then its numbers in C order. All of it is little-endian. The server reads and
writes such values without NumPy, as `Tensor`; workers as arrays. `references` has the extension type 2. A text or bytes
that are an array of one element (MindSpore Serving's clients send such) are the extension types 3 and 4.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable
from functools import lru_cache
from itertools import islice
from math import prod
from typing import Any

import msgspec

from msx_sdk._internal.references import LEAST, REFERENCE, Reference, SharedPlace, place_bytes, split_place

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


Resolve = Callable[[Reference], Any]
"""Returns the value that a reference stands for. Raises InvalidPacked."""


class OneText(str):
    """A text of shape [1]. Handlers see a text; one that returns it as it is returns the shape, too."""

    __slots__ = ()


class OneBytes(bytes):
    """Bytes of shape [1]."""

    __slots__ = ()


def pack(value: Any) -> bytes:
    """Raises TypeError for what has no form here, ValueError for an array of such a type."""
    return _encoder.encode(value)


def pack_shared(value: Any, place: SharedPlace) -> bytes:
    """As `pack`, with large arrays and bytes in shared memory, where `place` takes them."""
    if not _begins_with_large_bytes(value):
        try:
            packed = _small.encode(value)
        except _LargeArray:
            return _pack_large(value, place)
        if len(packed) <= LEAST:
            return packed
    return _pack_large(_with_large_bytes(value), place)


def _pack_large(value: Any, place: SharedPlace) -> bytes:
    placed: dict[int, msgspec.msgpack.Ext] = {}

    def in_place(one: Any) -> Any:
        if type(one) is not _Bytes:
            return _placed_array(one, place, placed)
        reference = place.data(one.data)
        return one.data if reference is None else msgspec.msgpack.Ext(REFERENCE, place_bytes(reference))

    encoder = msgspec.msgpack.Encoder(enc_hook=in_place)
    packed = encoder.encode(value)
    return packed if len(packed) <= LEAST else encoder.encode(_with_large_bytes(value))


def unpack(data: Buffer, make: Callable[[Tensor], Any] | None = None, resolve: Resolve | None = None) -> Any:
    """`make` gets each array as a Tensor; without it the value has NumPy arrays, which belong to the caller.

    `resolve` gets each reference to shared memory; without it they are refused. Raises InvalidPacked.
    """
    if make is None and resolve is None:
        return _decoded(_to_arrays, data)
    return _decoded(msgspec.msgpack.Decoder(ext_hook=extensions(make or as_array, resolve)), data)


def unpack_sent(data: Buffer) -> Any:
    """What a client sent as MessagePack: of our extension types arrays alone. Raises InvalidPacked."""
    return _decoded(_to_sent, data)


def sent_extension(code: int, data: memoryview) -> Any:
    """The `ext_hook` for it. Raises InvalidPacked."""
    if code != TENSOR:
        raise InvalidPacked(f"extension type {code} is not known: {TENSOR}, an array, is the only one")
    return as_array(_tensor(data))


def unpack_tensors(data: Buffer) -> Any:
    """As `unpack`, with each array as a Tensor. Raises InvalidPacked."""
    return _decoded(_to_tensors, data)


def as_array(tensor: Tensor) -> Any:
    """A NumPy array that can be written. Raises InvalidPacked for a shape that NumPy does not have."""
    import numpy as np

    try:
        return np.ndarray(tensor.shape, tensor.dtype, tensor.data).copy()
    except (ValueError, OverflowError, TypeError):
        raise InvalidPacked(f"an array of shape {list(tensor.shape)} is too large") from None


def _decoded(decoder: msgspec.msgpack.Decoder[Any], data: Buffer) -> Any:
    try:
        return decoder.decode(data)
    except RecursionError:
        raise InvalidPacked("it is nested too deeply") from None
    except msgspec.DecodeError as error:
        raise InvalidPacked(str(error)) from None


def extensions(make: Callable[[Tensor], Any], resolve: Resolve | None = None) -> Callable[[int, memoryview], Any]:
    """The `ext_hook` of MessagePack: `make` gets each array; extensions that are not known are refused."""

    def read(code: int, data: memoryview) -> Any:
        if code == REFERENCE:
            return _resolved(data, resolve)
        if code == TENSOR:
            return make(_tensor(data))
        if code == TEXT:
            return OneText(_text(data))
        if code == BYTES:
            return OneBytes(data)
        raise InvalidPacked(f"extension type {code} is not known: it may be {TENSOR} (an array), {TEXT} or {BYTES}")

    return read


def _resolved(data: memoryview, resolve: Resolve | None) -> Any:
    """Raises InvalidPacked."""
    if resolve is None:
        raise InvalidPacked("it refers to shared memory, which only a stage of the same model may do")
    try:
        place, head = split_place(data)
    except struct.error:
        raise InvalidPacked("a reference to shared memory is incomplete") from None
    if not head:
        return resolve(Reference(*place))
    dtype, shape, size = _known_head(bytes(head))
    if size != place[3]:
        raise _wrong_size(dtype, shape, place[3])
    return resolve(Reference(*place, dtype, shape))


def _text(data: memoryview) -> str:
    """Raises InvalidPacked."""
    try:
        return str(data, "utf-8")
    except UnicodeDecodeError as error:
        raise InvalidPacked(f"a text is not UTF-8: {error}") from None


def _tensor(data: memoryview) -> Tensor:
    """Raises InvalidPacked."""
    head_size = _head_size(data)
    dtype, shape, size = _known_head(bytes(data[:head_size]))
    numbers = data[head_size:]
    if len(numbers) != size:
        raise _wrong_size(dtype, shape, len(numbers))
    return Tensor(dtype, shape, numbers)


def _head_size(data: memoryview) -> int:
    """Raises InvalidPacked."""
    try:
        return 2 + data[0] + 8 * data[1 + data[0]]
    except IndexError:
        raise _incomplete() from None


@lru_cache(maxsize=1000)
def _known_head(data: bytes) -> tuple[str, tuple[int, ...], int]:
    """Type, shape and bytes of an array; the same heads come again and again. Raises InvalidPacked."""
    try:
        name_end = 1 + data[0]
        dtype = data[1:name_end].decode("ascii")
        dimensions = data[name_end]
        shape = struct.unpack_from(f"<{dimensions}Q", data, name_end + 1)
    except (IndexError, struct.error, UnicodeDecodeError):
        raise _incomplete() from None
    if dtype not in SIZES or dimensions > MOST_DIMENSIONS:
        raise InvalidPacked(f"an array of type {dtype[:20]!r} with {dimensions} dimensions is not known")
    size = prod(shape) * SIZES[dtype]
    if not size and 0 in shape and prod(shape[: shape.index(0)]) > MOST_EMPTY:
        raise InvalidPacked(f"an array of shape {list(shape)} has more than {MOST_EMPTY} rows without numbers")
    return dtype, shape, size


def _incomplete() -> InvalidPacked:
    return InvalidPacked("an array's head is incomplete")


def _wrong_size(dtype: str, shape: tuple[int, ...], size: int) -> InvalidPacked:
    wanted = prod(shape) * SIZES[dtype]
    return InvalidPacked(f"an array of {dtype} and shape {list(shape)} has {size} bytes, not {wanted}")


def extension(value: Any) -> Any:
    """The `enc_hook` of MessagePack. Raises TypeError, ValueError."""
    if isinstance(value, Tensor):
        return _ext(value.dtype, value.shape, value.data)
    if isinstance(value, str | bytes):
        return _plain(value)
    if hasattr(value, "asnumpy"):
        value = value.asnumpy()
    numpy = sys.modules.get("numpy")
    if numpy is None or not isinstance(value, numpy.ndarray | numpy.generic):
        raise TypeError(f"{type(value).__name__} cannot be sent: use numbers, texts, bytes, lists, dicts or arrays")
    dtype = value.dtype
    name = _names.get(dtype) or _names.setdefault(dtype, dtype.name)
    if name not in SIZES:
        raise ValueError(f"an array of {name} cannot be sent: use one of {', '.join(SIZES)}")
    if value.nbytes <= LEAST and dtype.isnative and sys.byteorder == "little":
        return _ext(name, value.shape, value.tobytes())
    plain = numpy.ascontiguousarray(value, dtype.newbyteorder("<")).reshape(-1)
    return _ext(name, value.shape, memoryview(plain).cast("B") if plain.size else b"")


def _plain(value: str | bytes) -> Any:
    """Of a subclass."""
    if isinstance(value, OneText):
        return msgspec.msgpack.Ext(TEXT, value.encode())
    if isinstance(value, OneBytes):
        return msgspec.msgpack.Ext(BYTES, memoryview(value))
    return str(value) if isinstance(value, str) else bytes(value)


_names: dict[Any, str] = {}
"""By NumPy's types: to ask them takes longer than to encode a small array. There are few."""


class _LargeArray(Exception):
    """A value has an array for which shared memory is tried."""


def _small_extension(value: Any) -> Any:
    if getattr(value, "nbytes", 0) > LEAST:
        raise _LargeArray
    return extension(value)


def _ext(dtype: str, shape: tuple[int, ...], data: Buffer) -> msgspec.msgpack.Ext:
    return msgspec.msgpack.Ext(TENSOR, b"".join((_head_bytes(dtype, shape), data)))


@lru_cache(maxsize=1000)
def _head_bytes(dtype: str, shape: tuple[int, ...]) -> bytes:
    name = dtype.encode()
    return struct.pack(f"<B{len(name)}sB{len(shape)}Q", len(name), name, len(shape), *shape)


class _Bytes:
    """Large bytes within a value, on their way to `place.data`: of plain bytes the encoder does not ask."""

    __slots__ = ("data",)

    def __init__(self, data: Buffer) -> None:
        self.data = data


def _begins_with_large_bytes(value: Any) -> bool:
    """It is such bytes, or a dict or short list of them: to encode it first would copy them for nothing."""
    if type(value) in _BUFFERS:
        return len(value) > LEAST
    members = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    return any(type(one) in _BUFFERS and len(one) > LEAST for one in islice(members, 100))


_BUFFERS = frozenset((bytes, bytearray, memoryview))


def _with_large_bytes(value: Any) -> Any:
    if type(value) in _BUFFERS:
        return _Bytes(value) if memoryview(value).nbytes > LEAST else value
    if isinstance(value, dict):
        return {name: _with_large_bytes(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_with_large_bytes(one) for one in value]
    return value


def _placed_array(value: Any, place: SharedPlace, placed: dict[int, msgspec.msgpack.Ext]) -> Any:
    """Each array once, although a value with large bytes is encoded twice."""
    if id(value) in placed:
        return placed[id(value)]
    array = value.asnumpy() if hasattr(value, "asnumpy") else value
    if getattr(array, "nbytes", 0) <= LEAST or getattr(array.dtype, "name", "") not in SIZES:
        return extension(array)
    reference = place.array(array)
    if reference is None:
        return extension(array)
    ext = msgspec.msgpack.Ext(REFERENCE, place_bytes(reference) + _head_bytes(reference.dtype, reference.shape))
    placed[id(value)] = ext
    return ext


_small = msgspec.msgpack.Encoder(enc_hook=_small_extension)
_encoder = msgspec.msgpack.Encoder(enc_hook=extension)
_to_sent = msgspec.msgpack.Decoder(ext_hook=sent_extension)
_to_tensors = msgspec.msgpack.Decoder(ext_hook=extensions(lambda tensor: tensor))
_to_arrays = msgspec.msgpack.Decoder(ext_hook=extensions(as_array))
