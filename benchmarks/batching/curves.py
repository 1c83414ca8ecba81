"""Curves of the outcomes: the p99 by the offered rate, and the rate at an equal p99."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import exp, inf, isinf, log
from statistics import fmean, median

from benchmarks.load.open_loop import Outcome

Curve = Mapping[float, float]
"""Requests a second that were offered to the p99 in seconds; infinity where more than 1 % were not answered."""


def p99(outcome: Outcome) -> float:
    """The p99 of all due requests: one without an answer counts as infinite."""
    taken = sorted(outcome.taken)
    rank = int((len(taken) + outcome.failed) * 0.99)
    return taken[rank] if rank < len(taken) else inf


def curve(outcomes: Mapping[float, Sequence[Outcome]]) -> Curve:
    """The median of the rounds."""
    return {rate: median(map(p99, outcomes[rate])) for rate in sorted(outcomes)}


def rising(curve: Curve) -> Curve:
    """The closest curve that does not fall, as a p99 does not at higher rates: isotonic regression of logarithms.

    Without the rates at which there is none.
    """
    steps: list[tuple[float, list[float]]] = []  # of neighbours that have one level: the level, and their rates
    for rate in sorted(rate for rate in curve if not isinf(curve[rate])):
        level, rates = log(curve[rate]), [rate]
        while steps and steps[-1][0] > level:
            before, earlier = steps.pop()
            level = (before * len(earlier) + level * len(rates)) / (len(earlier) + len(rates))
            rates = earlier + rates
        steps.append((level, rates))
    return {rate: exp(level) for level, rates in steps for rate in rates}


def sustained(curve: Curve, bound: float) -> float:
    """The highest rate at which the p99 is within the bound, along straight lines on logarithmic axes.

    Above the highest rate that was offered it is that one; below the lowest, less in proportion.
    """
    points = [*rising(curve).items()]
    if not points:
        return 0.0
    if bound < points[0][1]:
        return points[0][0] * bound / points[0][1]
    for (low, at_low), (high, at_high) in pairwise(points):
        if bound < at_high:
            return low * exp(log(bound / at_low) / log(at_high / at_low) * log(high / low))
    return points[-1][0]


def gains(ours: Curve, other: Curve, limit: float) -> dict[float, float]:
    """Rate that we sustain at the p99 of the other, over its own, by each rate that was offered to the other.

    A p99 of more than `limit` counts as that: it is none that one would promise.
    """
    theirs = rising(other)
    return {rate: sustained(ours, min(theirs.get(rate, inf), limit)) / rate for rate in other}


def over_the_sweep(gains: Mapping[float, float]) -> float:
    """The geometric mean: twice as much at one rate and half as much at another cancel out."""
    return exp(fmean(map(log, gains.values())))
