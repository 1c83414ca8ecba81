"""Draws tokens by random numbers of one text."""

from __future__ import annotations

import numpy as np

from msx_backend.llm.sampling.largest import Row
from msx_backend.llm.sampling.sums import BLOCK, block_sums


class RandomNumbers:
    """The i-th number depends only on the seed and i. Philox is keyed: neighbouring seeds give unrelated streams."""

    def __init__(self, seed: int) -> None:
        self._random = np.random.Generator(np.random.Philox(key=seed))

    def throw(self) -> float:
        """A number in [0, 1)."""
        return self._random.random()


def draw(weights: Row, uniform: float) -> int:
    """The index whose interval contains `uniform` when the weights are laid side by side; never one of weight 0.

    It sums blocks first, then within one block: the cumulative sum of a whole vocabulary costs three times as much.
    """
    blocks = block_sums(weights)
    ends = blocks.cumsum(dtype=np.float64)
    target = uniform * ends[-1]
    block = _place(ends, target)
    start = block * BLOCK
    inside = weights[start : start + BLOCK].cumsum(dtype=np.float64)
    return start + _place(inside, target - (ends[block] - blocks[block]))


def _place(ends: np.ndarray[tuple[int], np.dtype[np.float64]], target: float) -> int:
    """The first end above the target or, if rounding put the target beyond all, the last index with weight."""
    place = int(ends.searchsorted(target, side="right"))
    return place if place < ends.size else int(ends.searchsorted(ends[-1]))
