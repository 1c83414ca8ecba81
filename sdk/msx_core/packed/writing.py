"""The way from a value to bytes."""

import sys
from typing import Any

import msgspec

from msx_core.packed.tensor import (
    BYTES,
    SIZES,
    TENSOR,
    TEXT,
    Buffer,
    OneBytes,
    OneText,
    Tensor,
    head_bytes,
)
from msx_core.references import LEAST


def pack(value: Any) -> bytes:
    """Raises TypeError for what has no form here, ValueError for an array of such a type."""
    return _encoder.encode(value)


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
    """Encode a value of a subclass."""
    if isinstance(value, OneText):
        return msgspec.msgpack.Ext(TEXT, value.encode())
    if isinstance(value, OneBytes):
        return msgspec.msgpack.Ext(BYTES, memoryview(value))
    return str(value) if isinstance(value, str) else bytes(value)


_names: dict[Any, str] = {}
"""Names by NumPy's types: to ask them takes longer than to encode a small array. There are few."""


def _ext(dtype: str, shape: tuple[int, ...], data: Buffer) -> msgspec.msgpack.Ext:
    return msgspec.msgpack.Ext(TENSOR, b"".join((head_bytes(dtype, shape), data)))


_encoder = msgspec.msgpack.Encoder(enc_hook=extension)
