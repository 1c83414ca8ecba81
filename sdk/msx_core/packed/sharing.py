"""The way from a value to bytes, with its large parts in shared memory."""

from __future__ import annotations

from itertools import islice
from typing import Any

import msgspec

from msx_core.packed.tensor import SIZES, Buffer, head_bytes
from msx_core.packed.writing import extension
from msx_core.references import LEAST, REFERENCE, SharedPlace, place_bytes


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


class _LargeArray(Exception):
    """A value has an array for which shared memory is tried."""


def _small_extension(value: Any) -> Any:
    if getattr(value, "nbytes", 0) > LEAST:
        raise _LargeArray
    return extension(value)


class _Bytes:
    """Large bytes within a value, on their way to `place.data`: of plain bytes the encoder does not ask."""

    __slots__ = ("data",)

    def __init__(self, data: Buffer) -> None:
        self.data = data


def _begins_with_large_bytes(value: Any) -> bool:
    """It is such bytes, or a dict or short list of them: to encode it first would copy them for nothing."""
    if type(value) in _BUFFERS:
        return len(value) > LEAST
    if not isinstance(value, (dict, list, tuple)):
        return False
    members = value.values() if isinstance(value, dict) else value
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
    ext = msgspec.msgpack.Ext(REFERENCE, place_bytes(reference) + head_bytes(reference.dtype, reference.shape))
    placed[id(value)] = ext
    return ext


_small = msgspec.msgpack.Encoder(enc_hook=_small_extension)
