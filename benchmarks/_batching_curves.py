"""What throughput-latency curves say: how many requests a second a setting gives while its p99 keeps to a bound."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import exp, inf, isinf, log
from statistics import mean, median

from benchmarks._open_loop import Outcome

Curve = Mapping[float, float]
"""Requests a second that were offered to the p99 in seconds; infinity where more than 1 % were not answered."""


def p99(outcome: Outcome) -> float:
    """Of all that were due: who got no answer took for ever."""
    taken = sorted(outcome.taken)
    rank = int((len(taken) + outcome.failed) * 0.99)
    return taken[rank] if rank < len(taken) else inf


def curve(outcomes: Mapping[float, Sequence[Outcome]]) -> Curve:
    """The median of the rounds."""
    return {rate: median(map(p99, outcomes[rate])) for rate in sorted(outcomes)}


def sustained(curve: Curve, bound: float) -> float:
    """The highest rate at which the p99 is within the bound; 0 if there is none.

    Between the last rate measured that keeps it and the next one, along a straight line on logarithmic axes.
    """
    kept = [rate for rate, value in curve.items() if value <= bound]
    if not kept:
        return 0.0
    low = max(kept)
    high = min((rate for rate in curve if rate > low), default=low)
    if high == low or isinf(curve[high]):
        return low
    share = log(bound / curve[low]) / log(curve[high] / curve[low])
    return exp(log(low) + share * log(high / low))


def worst_share(ours: Curve, others: Sequence[Curve], bounds: Sequence[float]) -> float:
    """The lowest of all bounds: our rate by that of the best of the others; bounds that nobody keeps are left out."""
    best = {bound: max(sustained(other, bound) for other in others) for bound in bounds}
    return min((sustained(ours, bound) / rate for bound, rate in best.items() if rate), default=inf)


def advantage(ours: Curve, other: Curve, everybody: Sequence[Curve], bounds: Sequence[float]) -> float:
    """Over the whole sweep of bounds: our rate as a share of the best there is at each, by the other's, on average."""
    theirs = _mean_share(other, everybody, bounds)
    return _mean_share(ours, everybody, bounds) / theirs if theirs else inf


def _mean_share(one: Curve, everybody: Sequence[Curve], bounds: Sequence[float]) -> float:
    best = {bound: max(sustained(other, bound) for other in everybody) for bound in bounds}
    return mean([sustained(one, bound) / rate for bound, rate in best.items() if rate] or [0.0])
