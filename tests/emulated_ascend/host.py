"""MindSpore's CPU tensors as NumPy arrays and back, bfloat16 too."""

from __future__ import annotations

import ctypes
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Tensor
from mindspore.common.np_dtype import bfloat16
from numpy.typing import NDArray

Array = NDArray[Any]
Floats = NDArray[np.float32]

BFLOAT16: np.dtype[Any] = np.dtype(bfloat16)
"""MindSpore brings one of its own; NumPy rounds to it to the nearest, ties to even."""
KINDS: dict[Any, np.dtype[Any]] = {
    ms.bfloat16: BFLOAT16,
    ms.float16: np.dtype(np.float16),
    ms.float32: np.dtype(np.float32),
    ms.int8: np.dtype(np.int8),
    ms.int32: np.dtype(np.int32),
    ms.int64: np.dtype(np.int64),
    ms.bool_: np.dtype(np.bool_),
}


def memory(tensor: Tensor) -> Array:
    """The tensor's own memory: what is written here is in the tensor, also where it is a part of another one.
    `asnumpy()` of a part is a copy. It is valid as long as the tensor."""
    if not tensor.is_contiguous():
        raise ValueError(f"{list(tensor.shape)} is not contiguous")
    dtype, count = KINDS[tensor.dtype], int(np.prod(tensor.shape))
    if not count:
        return np.empty(tensor.shape, dtype)
    address = tensor.data_ptr()  # waits for what MindSpore still computes
    raw = (ctypes.c_uint8 * (dtype.itemsize * count)).from_address(address)
    values: Array = np.ctypeslib.as_array(raw).view(dtype).reshape(tensor.shape)
    return values


def array(tensor: Tensor) -> Array:
    """To be read only."""
    return memory(tensor) if tensor.is_contiguous() else np.asarray(tensor.asnumpy())


def widened(values: Array) -> Floats:
    """float32 of float16, bfloat16 or float32."""
    if values.dtype == BFLOAT16:  # four times as fast as astype
        return (np.ascontiguousarray(values).view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    return values.astype(np.float32)


def floats(tensor: Tensor) -> Floats:
    return widened(array(tensor))


def tensor(values: Any, dtype: Any) -> Tensor:
    """`values` rounded once to `dtype`. What is too large for float16 is infinite, as on an NPU."""
    with np.errstate(over="ignore", invalid="ignore"):
        return Tensor(np.ascontiguousarray(np.asarray(values).astype(KINDS[dtype])))


def poisoned(shape: tuple[int, ...], dtype: Any) -> Tensor:
    """A tensor that nobody may read, and a cache whose unused slots nobody may read: NaN, of integers the least."""
    kind = KINDS[dtype]
    return Tensor(np.full(shape, np.iinfo(kind).min if kind.kind in "iu" else np.nan).astype(kind))
