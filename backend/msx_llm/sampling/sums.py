"""Sums of the weights of a whole vocabulary, of blocks first: in single precision a sum over all would be off by some
tokens' weight."""

import numpy as np
from numpy.typing import NDArray

from msx_llm.sampling.largest import Ids, Row

SHIFT = 8
BLOCK = 1 << SHIFT
Sums = NDArray[np.float64]
"""A sum for each `BLOCK` weights; the last block may have fewer."""
MANY = 64
"""A share of the weights above 1/64 costs less as a product over all than when it is put together."""


def block_sums(weights: Row) -> Sums:
    """`einsum` costs a third of `np.sum`, and has no threads that wait for each other, as a matrix product has."""
    whole = weights.size // BLOCK * BLOCK
    sums = np.einsum("ij->i", weights[:whole].reshape(-1, BLOCK)).astype(np.float64)
    return sums if whole == weights.size else np.append(sums, weights[whole:].sum())


def sums_where(weights: Row, kept: NDArray[np.bool_]) -> Sums:
    if np.count_nonzero(kept) * MANY <= kept.size:
        ids = np.flatnonzero(kept)
        return sums_of(weights[ids], ids, weights.size)
    factors = kept.astype(np.float32)
    whole = weights.size // BLOCK * BLOCK
    blocks = np.einsum("ij,ij->i", weights[:whole].reshape(-1, BLOCK), factors[:whole].reshape(-1, BLOCK))
    sums = blocks.astype(np.float64)
    return sums if whole == weights.size else np.append(sums, weights[whole:] @ factors[whole:])


def sums_of(weights: Row, ids: Ids, size: int) -> Sums:
    """Block sums of some weights of `size`; those that are missing count 0."""
    sums: Sums = np.bincount(ids >> SHIFT, weights, -(-size // BLOCK)).astype(np.float64, copy=False)
    return sums
