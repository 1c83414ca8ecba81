"""Percentiles of what a histogram has counted between two looks."""

from collections.abc import Sequence
from math import nan


def percentile(bounds: Sequence[float], counts: Sequence[int], share: float) -> float:
    """The value below which `share` of the counted ones are, as if those of a bucket were spread evenly over it.

    `counts` has one for each bound, and one for what is above all of them, of which nothing more is known than the
    last bound. NaN where nothing was counted.
    """
    total = sum(counts)
    if not total:
        return nan
    rank, below = share * total, 0
    for at, (bound, count) in enumerate(zip(bounds, counts, strict=False)):
        if count and below + count >= rank:
            lower = bounds[at - 1] if at else 0.0
            return lower + (bound - lower) * (rank - below) / count
        below += count
    return bounds[-1]


def upper_bound(bounds: Sequence[float], counts: Sequence[int], share: float) -> float:
    """The bound of the bucket that the percentile is in; 0 where nothing was counted."""
    rank, below = share * sum(counts), 0
    if not rank:
        return 0.0
    for bound, count in zip(bounds, counts, strict=False):
        below += count
        if below >= rank:
            return bound
    return bounds[-1]
