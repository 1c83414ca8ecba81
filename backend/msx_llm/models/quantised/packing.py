"""Several integers in each int32, the first one in the lowest bits."""

from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
WORD = 32


def unpacked(words: Array, bits: int, axis: int) -> Array:
    """int32 -> uint8; the axis is `32 // bits` times as long."""
    words = np.moveaxis(words, axis, -1).view(np.uint32)
    codes = np.empty((*words.shape, WORD // bits), np.uint8)
    for place in range(WORD // bits):
        codes[..., place] = words >> np.uint32(place * bits) & np.uint32((1 << bits) - 1)
    return np.moveaxis(codes.reshape(*words.shape[:-1], -1), -1, axis)


def signed(codes: Array, bits: int) -> Array:
    """Codes from 0 on -> int8, by half of their range lower."""
    lower: Array = (codes.astype(np.int16) - (1 << bits - 1)).astype(np.int8)
    return lower


def words_of(part: slice, bits: int) -> tuple[slice, slice]:
    """The words that hold a part of an axis, and the part in what is unpacked of them."""
    each = WORD // bits
    first = part.start // each
    return slice(first, -(-part.stop // each)), slice(part.start - first * each, part.stop - first * each)


def grouped(part: slice, group: int | None) -> slice:
    """The groups of a part of the inputs."""
    return slice(0, 1) if group is None else slice(part.start // group, part.stop // group)
