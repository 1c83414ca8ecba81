"""Draws tokens by random numbers of one text."""

import numpy as np

from msx_llm.sampling.filters import TokenWeights
from msx_llm.sampling.sums import BLOCK, Sums


class RandomNumbers:
    """The i-th number depends only on the seed and i. Philox is keyed: neighbouring seeds give unrelated streams."""

    def __init__(self, seed: int) -> None:
        self._random = np.random.Generator(np.random.Philox(key=seed))

    def throw(self) -> float:
        """A number in [0, 1)."""
        return self._random.random()


def draw(weights: TokenWeights, uniform: float) -> int:
    """The token whose interval contains `uniform` when the weights are laid side by side; never one of weight 0.

    Its block first, then its place within: the cumulative sum of a whole vocabulary costs three times as much.
    """
    ends = weights.sums.cumsum()
    target = uniform * float(ends[-1])
    block = _place(ends, target)
    before = float(ends[block] - weights.sums[block])
    while not (inside := weights.block(block).cumsum(dtype=np.float64))[-1]:  # its sum is rounding
        block, before = (block + 1) % ends.size, target
    return weights.id(block * BLOCK + _place(inside, target - before))


def _place(ends: Sums, target: float) -> int:
    """The first end above the target or, if rounding put the target beyond all, the last index with weight."""
    place = int(ends.searchsorted(target, side="right"))
    return place if place < ends.size else int(ends.searchsorted(ends[-1]))
