"""The integers of blocks, their scales and zero points, as ggml defines the types (ggml-common.h, ggml-quants.c).

Types end with 0 or K6 where a number is a scale times a code, with 1 or K where a smallest number is added: that is a
zero point of minus it over the scale.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, Literal, NamedTuple

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]


class BlockForm(NamedTuple):
    """`group` inputs have a scale. Codes of 4 bits are between -8 and 7."""

    bits: Literal[4, 8]
    group: int
    zeros: bool
    decode: Callable[[Array], Codes]


class Codes(NamedTuple):
    """A number is (code - zero) * scale. `codes` int8 [..., values]; others float32 [..., groups], `zeros` None for
    zeros alone."""

    codes: Array
    scales: Array
    zeros: Array | None

    @property
    def numbers(self) -> Array:
        """float32 [..., values]"""
        groups = self.codes.reshape(*self.scales.shape, self.codes.shape[-1] // self.scales.shape[-1])
        shifted = groups if self.zeros is None else groups - self.zeros[..., None]
        rows: Array = shifted * self.scales[..., None]
        return rows.reshape(self.codes.shape)


def _q4_0(blocks: Array) -> Codes:
    return _scaled(_halves(blocks[..., 2:]), 8, _floats(blocks, 0))


def _q4_1(blocks: Array) -> Codes:
    return _shifted(_halves(blocks[..., 4:]), 8, _floats(blocks, 0), _floats(blocks, 2))


def _q5_0(blocks: Array) -> Codes:
    return _scaled(_halves(blocks[..., 6:]) | _fifth(blocks[..., 2:6]), 16, _floats(blocks, 0))


def _q5_1(blocks: Array) -> Codes:
    codes = _halves(blocks[..., 8:]) | _fifth(blocks[..., 4:8])
    return _shifted(codes, 16, _floats(blocks, 0), _floats(blocks, 2))


def _q8_0(blocks: Array) -> Codes:
    return _joined(blocks[..., 2:].view(np.int8), _floats(blocks, 0), None)


def _q4_k(blocks: Array) -> Codes:
    codes = _halves(blocks[..., 16:].reshape(*blocks.shape[:-1], 4, 32))
    return _shifted(codes.reshape(*codes.shape[:-2], 8, 32), 8, *_sixths(blocks))


def _q5_k(blocks: Array) -> Codes:
    lower = _halves(blocks[..., 48:].reshape(*blocks.shape[:-1], 4, 32)).reshape(*blocks.shape[:-1], 8, 32)
    upper = blocks[..., None, 16:48] >> np.arange(8, dtype=np.uint8)[:, None] & 1
    return _shifted(lower | upper << 4, 16, *_sixths(blocks))


def _q6_k(blocks: Array) -> Codes:
    """Halves of 128 numbers: 64 bytes of lower 4 bits, and 32 bytes with upper 2 bits for each quarter."""
    lower = _halves(blocks[..., :128].reshape(*blocks.shape[:-1], 2, 64)).reshape(*blocks.shape[:-1], 2, 4, 32)
    upper = blocks[..., 128:192].reshape(*blocks.shape[:-1], 2, 1, 32)
    upper = upper >> np.arange(0, 8, 2, dtype=np.uint8)[:, None] & 3
    codes = (lower | upper << 4).reshape(*blocks.shape[:-1], 16, 16)
    scales = blocks[..., 192:208].view(np.int8) * _floats(blocks, 208)[..., None]
    return _scaled(codes, 32, scales)


def _floats(blocks: Array, place: int) -> Array:
    """float32 [...] of the float16 at that byte of each block."""
    pair = np.ascontiguousarray(blocks[..., place : place + 2])
    return pair.view("<f2")[..., 0].astype(np.float32)


def _halves(data: Array) -> Array:
    """The lower 4 bits of all bytes, then the upper ones."""
    return np.concatenate([data & 15, data >> 4], axis=-1)


def _fifth(data: Array) -> Array:
    """The fifth bits of 32 codes, from 4 bytes."""
    return np.unpackbits(data, axis=-1, bitorder="little") << 4


def _sixths(blocks: Array) -> tuple[Array, Array]:
    """Scales, and smallest numbers, of the 8 groups of a block: 6 bits each in 12 bytes, times two float16."""
    packed = blocks[..., 4:16]
    first, second, third = packed[..., :4], packed[..., 4:8], packed[..., 8:]
    scales = np.concatenate([first & 63, third & 15 | first >> 6 << 4], axis=-1)
    least = np.concatenate([second & 63, third >> 4 | second >> 6 << 4], axis=-1)
    return scales * _floats(blocks, 0)[..., None], -(least * _floats(blocks, 2)[..., None])


def _scaled(codes: Array, middle: int, scales: Array) -> Codes:
    return _joined((codes.astype(np.int16) - middle).astype(np.int8), scales, None)


def _shifted(codes: Array, middle: int, scales: Array, least: Array) -> Codes:
    """Numbers are scale * code + least, codes from the middle of their range on, near which most zero points are.
    Where the scale is 0, all are the least: then that is the scale, times 1."""
    flat = scales == 0
    codes = np.where(flat[..., None], 1, codes).astype(np.int8) - np.int8(middle)
    with np.errstate(all="ignore"):  # of a damaged file
        zeros = -least / np.where(flat, 1, scales) - middle
    return _joined(codes, np.where(flat, least, scales), np.where(flat, -middle, zeros).astype(np.float32))


def _joined(codes: Array, scales: Array, zeros: Array | None) -> Codes:
    """Takes blocks [rows, blocks, …]."""
    return Codes(_flat(codes), _flat(scales), None if zeros is None else _flat(zeros))


def _flat(array: Array) -> Array:
    """[rows, …] -> [rows, numbers]; there may be no rows."""
    return array.reshape(len(array), prod(array.shape[1:]))


FORMS = {
    "Q4_0": BlockForm(4, 32, False, _q4_0),
    "Q4_1": BlockForm(4, 32, True, _q4_1),
    "Q5_0": BlockForm(8, 32, False, _q5_0),
    "Q5_1": BlockForm(8, 32, True, _q5_1),
    "Q8_0": BlockForm(8, 32, False, _q8_0),
    "Q4_K": BlockForm(4, 32, True, _q4_k),
    "Q5_K": BlockForm(8, 32, True, _q5_k),
    "Q6_K": BlockForm(8, 16, False, _q6_k),
}
"""How types are read, by name: uint8 [rows, blocks, bytes] -> Codes."""
