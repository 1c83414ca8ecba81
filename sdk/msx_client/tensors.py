"""NumPy arrays as tensors of KServe v2: names of data types, and values as bytes, little-endian."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

_NAMES = {
    "bool": "BOOL",
    "float16": "FP16",
    "float32": "FP32",
    "float64": "FP64",
    **{f"{sign}int{bits}": f"{sign.upper()}INT{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
}
_DTYPES = {name: dtype for dtype, name in _NAMES.items()}


def datatype_of(array: np.ndarray[Any, Any]) -> str:
    """Raises ValueError for a data type that the protocol does not have."""
    if array.dtype.kind in "OSU":
        return "BYTES"
    name = _NAMES.get(array.dtype.name)
    if name is None:
        raise ValueError(f"An array of {array.dtype} cannot be sent: convert it to one of {', '.join(_NAMES)}.")
    return name


def to_bytes(array: np.ndarray[Any, Any]) -> bytes:
    if array.dtype.kind not in "OSU":
        return array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes()
    values = [one.encode() if isinstance(one, str) else bytes(one) for one in array.ravel().tolist()]
    return b"".join(struct.pack("<I", len(one)) + one for one in values)


def from_bytes(datatype: str, shape: list[int], data: bytes) -> np.ndarray[Any, Any]:
    """BYTES become an array of objects, BF16 float32."""
    import numpy as np

    if datatype == "BYTES":
        return np.array(_texts(data), object).reshape(shape)
    if datatype == "BF16":
        halves = np.frombuffer(data, "<u2").astype(np.uint32) << 16
        return halves.view(np.float32).reshape(shape)
    return np.frombuffer(data, np.dtype(_DTYPES[datatype]).newbyteorder("<")).reshape(shape)


def from_json(datatype: str, shape: list[int], data: Any) -> np.ndarray[Any, Any]:
    import numpy as np

    return np.array(data, object if datatype == "BYTES" else _DTYPES.get(datatype, "float32")).reshape(shape)


def is_array(value: Any) -> bool:
    """Whether it is an array. NumPy is not imported: who has an array has imported it."""
    return type(value).__module__ == "numpy" and hasattr(value, "dtype")


def _texts(data: bytes) -> list[bytes]:
    found, at = [], 0
    while at < len(data):
        (size,) = struct.unpack_from("<I", data, at)
        found.append(data[at + 4 : at + 4 + size])
        at += 4 + size
    return found
