"""Finds where the largest keys reach a share of all weight, without sorting them all."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from msx_backend.llm.sampling.largest import Row
from msx_backend.llm.sampling.sums import total, total_where

Keys = NDArray[np.float32] | NDArray[np.float64]
SAMPLE = 512
FEW = 4 * SAMPLE
"""So many keys are sorted."""
WIDTH = 4
"""Places in the sample: the keys between two that are this far apart are sorted."""


class KeySample(NamedTuple):
    """Every so-many-th key, ascending, and an estimate of the weight of all keys up to it."""

    keys: Keys
    tails: NDArray[np.float64]

    def place(self, tail: float) -> int:
        return int(self.tails.searchsorted(tail))


def lowest(keys: Keys, weight: Row, share: float) -> float:
    """The largest key such that those not below it have the share `share` of all weight. keys, weight [n]; weight >= 0,
    not all 0."""
    whole = total(weight)
    wanted = share * whole
    if keys.size <= FEW:
        return _in_order(keys, weight, wanted)
    sample = _sampled(keys, weight)
    guess = sample.place(whole - wanted)
    near = keys >= sample.keys[max(guess - WIDTH, 0)]
    if np.count_nonzero(near) <= FEW:
        few = np.flatnonzero(near)
        if total(weight[few]) >= wanted:
            return _in_order(keys[few], weight[few], wanted)
    return _between(keys, weight, wanted, _Search(sample, whole, wanted, guess))


def _between(keys: Keys, weight: Row, wanted: float, search: _Search) -> float:
    """A look is a comparison and a sum over all: a tenth of what a histogram costs. The keys between the last two looks
    are sorted."""
    while (place := search.next()) is not None:
        search.note(place, total_where(weight, keys >= search.sample.keys[place]))
    low, high = search.ends()
    between = np.flatnonzero((keys >= low) & (keys < high))
    return _in_order(keys[between], weight[between], wanted - search.above)


class _Search:
    """Narrows the places of a sample between which the lowest key is. `above`: the weight not below the upper one."""

    def __init__(self, sample: KeySample, whole: float, wanted: float, guess: int) -> None:
        self.sample, self._whole, self._wanted, self._guess = sample, whole, wanted, guess
        self._low, self._high, self.above = -1, sample.keys.size, 0.0

    def next(self) -> int | None:
        """Where to look next; None: nowhere."""
        if self._high - self._low <= WIDTH:
            return None
        return min(max(self._guess, self._low + 1), self._high - 1)

    def note(self, place: int, above: float) -> None:
        """The keys not below this place weigh `above`: so much is below that estimates can be put right. The next look
        is a little beyond, so that one on each side is enough for most."""
        actual, estimate = self._whole - above, float(self.sample.tails[place])
        nearer = self.sample.place((self._whole - self._wanted) * estimate / max(actual, 1e-30))
        if above >= self._wanted:
            self._low, end, beyond = place, self._high, WIDTH // 2
        else:
            self._high, end, beyond, self.above = place, self._low, -WIDTH // 2, above
        middle = (place + end) // 2
        self._guess = nearer + beyond if abs(nearer - place) < abs(middle - place) else middle

    def ends(self) -> tuple[float, float]:
        keys = np.concatenate([[-np.inf], self.sample.keys, [np.inf]])
        return float(keys[self._low + 1]), float(keys[self._high + 1])


def _sampled(keys: Keys, weight: Row) -> KeySample:
    stride = keys.size // SAMPLE
    some = keys[::stride]
    order = np.argsort(some)
    tails: NDArray[np.float64] = weight[::stride][order].cumsum(dtype=np.float64)
    return KeySample(some[order], np.multiply(tails, stride, dtype=np.float64))


def _in_order(keys: Keys, weight: Row, wanted: float) -> float:
    """By sorting."""
    order = np.argsort(-keys)
    reached = weight[order].cumsum(dtype=np.float64)
    return float(keys[order[min(int(reached.searchsorted(wanted)), keys.size - 1)]])
