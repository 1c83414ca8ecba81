"""Random numbers of one text, and what they choose."""

from __future__ import annotations

import numpy as np

from msx_backend.llm.sampling.largest import Row

BLOCK = 64


class RandomNumbers:
    """The i-th number depends on the seed and i alone. Philox is keyed: neighbouring seeds are unrelated streams."""

    def __init__(self, seed: int) -> None:
        self._random = np.random.Generator(np.random.Philox(key=seed))

    def throw(self) -> float:
        """In [0, 1)."""
        return self._random.random()


def draw(weights: Row, uniform: float) -> int:
    """The place that `uniform` falls on when the weights lie side by side. Never one of weight 0.

    Sums of blocks first, then one block: the cumulated sum of a whole vocabulary costs thrice as much.
    """
    blocks = np.add.reduceat(weights, np.arange(0, weights.size, BLOCK), dtype=np.float64)
    ends = blocks.cumsum()
    target = uniform * ends[-1]
    block = _place(ends, target)
    start = block * BLOCK
    inside = weights[start : start + BLOCK].cumsum(dtype=np.float64)
    return start + _place(inside, target - (ends[block] - blocks[block]))


def _place(ends: np.ndarray[tuple[int], np.dtype[np.float64]], target: float) -> int:
    """The first end above the target, or, where rounding put the target behind all, the last one that has weight."""
    place = int(ends.searchsorted(target, side="right"))
    return place if place < ends.size else int(ends.searchsorted(ends[-1]))
