"""Results of the operators, computed differently: float64, a token and a head at a time."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tests.emulated_ascend.host import Array

Doubles = np.ndarray[Any, np.dtype[np.float64]]


def attention(query: Doubles, keys: Doubles, values: Doubles, heads: int, kv_heads: int, scale: float) -> Doubles:
    """Attention of one token: query [N*D], keys [s, K*D] and values [s, K*V] that it sees -> [N*V]"""
    results = []
    for head, own in enumerate(np.split(query, heads)):
        shared = head * kv_heads // heads
        k, v = np.split(keys, kv_heads, axis=1)[shared], np.split(values, kv_heads, axis=1)[shared]
        weights = [math.exp(scale * float(own @ key)) for key in k]
        results.append(sum(weight * value for weight, value in zip(weights, v, strict=True)) / sum(weights))
    return np.concatenate(results)


def cached(blocks: Array, row: Any, length: int) -> Doubles:
    """A text's tokens [length, width], place by place."""
    size = blocks.shape[1]
    return np.array([np.ravel(blocks[row[place // size], place % size]) for place in range(length)], np.float64)


def turned(x: Doubles, position: int, size: int, pairs: bool) -> Doubles:
    """Each head of x [N*D] as complex numbers, turned by its angles."""
    angles = position * 10_000.0 ** (-np.arange(size // 2) / (size // 2))
    result = np.empty_like(x).reshape(-1, size)
    for head, own in enumerate(x.reshape(-1, size)):
        real, imaginary = (own[0::2], own[1::2]) if pairs else (own[: size // 2], own[size // 2 :])
        after = (real + 1j * imaginary) * np.exp(1j * angles)
        if pairs:
            result[head, 0::2], result[head, 1::2] = after.real, after.imag
        else:
            result[head] = np.concatenate((after.real, after.imag))
    return result.reshape(-1)
