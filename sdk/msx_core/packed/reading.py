"""The way from bytes to a value."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import msgspec

from msx_core.packed.tensor import (
    BYTES,
    TENSOR,
    TEXT,
    Buffer,
    InvalidPacked,
    OneBytes,
    OneText,
    Tensor,
    incomplete,
    known_head,
    wrong_size,
)
from msx_core.references import REFERENCE, Reference, split_place

Resolve = Callable[[Reference], Any]
"""Returns the value that a reference stands for. Raises InvalidPacked."""


def unpack(data: Buffer, make: Callable[[Tensor], Any] | None = None, resolve: Resolve | None = None) -> Any:
    """`make` gets each array as a Tensor; without it the value has NumPy arrays, which belong to the caller.

    `resolve` gets each reference to shared memory; without it they are refused. Raises InvalidPacked.
    """
    if make is None and resolve is None:
        return _decoded(_to_arrays, data)
    return _decoded(msgspec.msgpack.Decoder(ext_hook=extensions(make or as_array, resolve)), data)


def unpack_sent(data: Buffer) -> Any:
    """Read a client's MessagePack after its elements were counted; of our extension types arrays alone. Raises
    InvalidPacked."""
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
    dtype, shape, size = known_head(bytes(head))
    if size != place[3]:
        raise wrong_size(dtype, shape, place[3])
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
    dtype, shape, size = known_head(bytes(data[:head_size]))
    numbers = data[head_size:]
    if len(numbers) != size:
        raise wrong_size(dtype, shape, len(numbers))
    return Tensor(dtype, shape, numbers)


def _head_size(data: memoryview) -> int:
    """Raises InvalidPacked."""
    try:
        return 2 + data[0] + 8 * data[1 + data[0]]
    except IndexError:
        raise incomplete() from None


_to_sent = msgspec.msgpack.Decoder(ext_hook=sent_extension)
_to_tensors = msgspec.msgpack.Decoder(ext_hook=extensions(lambda tensor: tensor))
_to_arrays = msgspec.msgpack.Decoder(ext_hook=extensions(as_array))
