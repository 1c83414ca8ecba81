"""Tensors of 4-bit floats (MXFP4): 32 numbers have 16 bytes and a power of two."""

from collections.abc import Iterator
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
Shape = tuple[int, ...]
GROUP, ZERO = 32, 127
"""Numbers with one power of two, and the power that is 2 ** 0."""
_POSITIVE = [0, 0.5, 1, 1.5, 2, 3, 4, 6]
E2M1 = np.array([*_POSITIVE, *(-number for number in _POSITIVE)], np.float32)


def packed_shapes(name: str, shape: Shape) -> Iterator[tuple[str, Shape]]:
    """The tensors of the file for one of `shape`: [experts, in, out]."""
    experts, inputs, outputs = shape
    yield f"{name}_blocks", (experts, outputs, inputs // GROUP, GROUP // 2)
    yield f"{name}_scales", (experts, outputs, inputs // GROUP)


def unpacked(blocks: Array, scales: Array) -> Array:
    """blocks [out, groups, 16], the first number in the lower half of a byte; scales [out, groups]
    -> float32 [in, out]"""
    pairs = np.stack([E2M1[blocks & 15], E2M1[blocks >> 4]], -1)
    powers = scales.astype(np.int32) - ZERO
    values = np.ldexp(pairs.reshape(*scales.shape, GROUP), powers[..., None])
    return values.reshape(scales.shape[0], -1).T
