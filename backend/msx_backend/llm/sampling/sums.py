"""Sums of the weights of a whole vocabulary, of blocks first: in single precision a sum over all would be off by some
tokens' weight."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from msx_backend.llm.sampling.largest import Row

BLOCK = 64
LONG = 256
_ONES = np.ones(BLOCK, np.float32)


def block_sums(weights: Row) -> Row:
    """Of each `BLOCK` weights. A product with ones costs a quarter of `np.add.reduceat`."""
    whole = weights.size // BLOCK * BLOCK
    sums: Row = weights[:whole].reshape(-1, BLOCK) @ _ONES
    return sums if whole == weights.size else np.append(sums, weights[whole:].sum())


def total(weights: Row) -> float:
    return float(block_sums(weights).sum(dtype=np.float64))


def total_where(weights: Row, kept: NDArray[np.bool_]) -> float:
    factors = kept.astype(np.float32)
    whole = weights.size // LONG * LONG
    sums = np.matmul(weights[:whole].reshape(-1, 1, LONG), factors[:whole].reshape(-1, LONG, 1))
    return float(sums.sum(dtype=np.float64)) + float(weights[whole:] @ factors[whole:])
