"""Finds where the largest keys reach a share of all weight, without sorting them all."""

from math import isfinite, isqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from msx_llm.sampling.largest import Ids, Row
from msx_llm.sampling.sums import Sums, block_sums, sums_of, sums_where

Keys = NDArray[np.float32] | NDArray[np.float64]
SAMPLE = 2048
FEW = 4 * SAMPLE
"""So many keys are not worth a sample."""
MARGIN = 2
"""Places in the sample that a walk goes too far at least: one that falls short costs another stretch."""
SORTED = 512
"""So many keys are sorted: more of them cost less when they are counted in bins first."""
BINS, NARROWEST = 256, 1e-30
"""Bins of less than the narrowest range would be beyond single precision."""


class KeptShare(NamedTuple):
    """The keys that are not below `key`, and the sums of their weight. Rounding may leave a little in a block without
    any of them."""

    key: float
    sums: Sums


class KeySample(NamedTuple):
    """Every so-many-th key, ascending, and an estimate of the weight of all keys up to it."""

    keys: Keys
    tails: NDArray[np.float64]

    def key(self, place: int) -> float:
        """Minus infinity before the first place, infinity behind the last one."""
        if place < 0:
            return -np.inf
        return float(self.keys[place]) if place < self.keys.size else np.inf

    def place(self, tail: float) -> int:
        return int(self.tails.searchsorted(tail))


def largest_share(keys: Keys, weight: Row, share: float, sums: Sums | None = None) -> KeptShare:
    """The fewest of the largest keys, and ties of the last one, that have the share `share` of all weight. keys, weight
    [n]; weight >= 0, not all 0, with these `sums`."""
    if keys.size > FEW:
        whole = float((block_sums(weight) if sums is None else sums).sum())
        return _Walk(keys, weight, share * whole, whole).share()
    key = _among(keys, weight, share * float(weight.sum(dtype=np.float64)))
    return KeptShare(key, sums_where(weight, keys >= key))


class _Walk:
    """The way from the place in a sample where the lowest key should be to where it is.

    The weight of all keys not below the first place costs a pass over all; from there on, the keys of each stretch are
    picked out, and only they are summed.
    """

    def __init__(self, keys: Keys, weight: Row, wanted: float, whole: float) -> None:
        self._keys, self._weight, self._wanted, self._whole = keys, weight, wanted, whole
        self._sample = _sampled(keys, weight)
        self._place, self._step = min(self._sample.place(whole - wanted), SAMPLE - 1), 0
        self._above = keys >= self._sample.key(self._place)
        self._sums = sums_where(weight, self._above)
        """Block sums of the keys `above`, which are not below the place's key; their total is `reached`."""
        self._most = self._reached = float(self._sums.sum())

    def share(self) -> KeptShare:
        while True:
            up = self._reached >= self._wanted
            place = self._next(up)
            above = self._keys >= self._sample.key(place)
            between = np.flatnonzero(self._above ^ above)
            keys, weight = _picked(self._keys, self._weight, between)
            reached = self._reached + float(weight.sum(dtype=np.float64)) * (-1 if up else 1)
            if not 0 <= place < SAMPLE or (reached >= self._wanted) != up:
                key = self._found(keys, weight, min(reached, self._reached))
                moved = keys < key if up else keys >= key
                return self._share(key, sums_of(weight[moved], between[moved], self._keys.size), up)
            self._sums += sums_of(-weight if up else weight, between, self._keys.size)
            self._place, self._above, self._reached = place, above, reached

    def _share(self, key: float, change: Sums, up: bool) -> KeptShare:
        """The share without the keys between, or with them. What is left of much more would be rounding for the most
        part."""
        if up and self._wanted < self._most / 2:
            return KeptShare(key, sums_where(self._weight, self._keys >= key))
        return KeptShare(key, np.maximum(self._sums - change, 0.0) if up else self._sums + change)

    def _found(self, keys: Keys, weight: Row, above: float) -> float:
        """Find the key. Where there are no keys, they are all above, and what is wanted beyond is rounding."""
        return _among(keys, weight, self._wanted - above) if keys.size else self._sample.key(self._place)

    def _next(self, up: bool) -> int:
        """As much is below the place that estimates can be put right; and at least twice as far as before."""
        actual, estimate = self._whole - self._reached, float(self._sample.tails[self._place])
        nearer = self._sample.place((self._whole - self._wanted) * estimate / max(actual, 1e-30))
        distance = abs(nearer - self._place)
        self._step = max(distance + isqrt(distance) + MARGIN, 2 * self._step)
        return self._place + self._step if up else self._place - self._step


def _sampled(keys: Keys, weight: Row) -> KeySample:
    stride = keys.size // SAMPLE
    some, heavy = _ascending(keys[::stride][:SAMPLE], None if keys is weight else weight[::stride][:SAMPLE])
    tails: NDArray[np.float64] = heavy.cumsum(dtype=np.float64)
    return KeySample(some, np.multiply(tails, stride, dtype=np.float64))


def _ascending(keys: Keys, weight: Row | None) -> tuple[Keys, Keys]:
    """The keys in order, and their weights; None: the keys themselves, which then cost a third to sort."""
    if weight is None:
        ordered = keys.copy()
        ordered.sort()
        return ordered, ordered
    order = np.argsort(keys)
    return keys[order], weight[order]


def _among(keys: Keys, weight: Row, wanted: float) -> float:
    """Look in the bin in which it is, again, until few are left: each bin has fewer, because the smallest key and the
    largest one are in different ones."""
    if keys.size <= SORTED:
        return _in_order(keys, weight, wanted)
    low, high = float(keys.min()), float(keys.max())
    if low == high:
        return low
    if not isfinite(low) or not isfinite(high) or not high - low > NARROWEST:
        return _in_order(keys, weight, wanted)
    bins = ((keys - low) * (BINS / (high - low))).astype(np.intp)
    ends = np.bincount(bins, weight, BINS + 1)[::-1].cumsum()
    place = min(int(ends.searchsorted(wanted)), BINS)
    inside = np.flatnonzero(bins == BINS - place)
    return _among(*_picked(keys, weight, inside), wanted - (float(ends[place - 1]) if place else 0.0))


def _in_order(keys: Keys, weight: Row, wanted: float) -> float:
    """Key down to which the weights reach `wanted`, found by sorting."""
    ordered, weights = _ascending(keys, None if keys is weight else weight)
    reached = weights[::-1].cumsum(dtype=np.float64)
    return float(ordered[-1 - min(int(reached.searchsorted(wanted)), keys.size - 1)])


def _picked(keys: Keys, weight: Row, ids: Ids) -> tuple[Keys, Row]:
    """One array for both stays one."""
    picked = weight[ids]
    return picked if keys is weight else keys[ids], picked
