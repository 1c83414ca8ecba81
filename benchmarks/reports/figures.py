"""The arithmetic of the tables."""

from __future__ import annotations

from collections.abc import Sequence
from math import floor, log10
from statistics import median
from typing import NamedTuple

import numpy as np

RESAMPLES = 10_000


class Interval(NamedTuple):
    low: float
    high: float

    @property
    def width(self) -> float:
        return self.high - self.low


def paired_ratio(ours: Sequence[float], theirs: Sequence[float]) -> tuple[float, float, float]:
    """Median, lowest and highest of the ratios round by round: what disturbs a round disturbs both sides of it."""
    ratios = [one / other for one, other in zip(ours, theirs, strict=True)]
    return median(ratios), min(ratios), max(ratios)


def median_interval(values: Sequence[float]) -> Interval:
    """Return the 95 % percentile bootstrap interval of the median (Efron 1979).

    The same values give the same interval.
    """
    chosen = np.random.default_rng(0).choice(np.asarray(values), size=(RESAMPLES, len(values)))
    low, high = np.percentile(np.median(chosen, axis=1), (2.5, 97.5))
    return Interval(float(low), float(high))


def figure(value: float, digits: int = 3) -> str:
    """Three significant digits, and no fewer than the whole number: 12,345, 123, 1.23, 0.00123. A count stays one."""
    if value == 0 or isinstance(value, int):
        return f"{value:,.0f}"
    decimals = max(digits - 1 - floor(log10(abs(value))), 0)
    return f"{value:,.{decimals}f}"


def spread(values: Sequence[float]) -> str:
    """Lowest to highest; one figure where all are equal."""
    low, high = figure(min(values)), figure(max(values))
    return low if low == high else f"{low} – {high}"


__all__ = ["Interval", "figure", "median", "median_interval", "paired_ratio", "spread"]
