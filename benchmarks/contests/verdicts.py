"""Targets for the ratio of two servers in the same rounds, and whether they hold."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from benchmarks.contests.before import Pair, name_before
from benchmarks.contests.contest import Contestant, at, per_second, ratio, several
from benchmarks.reports.figures import paired_ratio
from benchmarks.reports.table import Target

Measure = Callable[[Contestant], list[float]]
"""One figure a round."""


def targets(
    contestants: Sequence[Contestant],
    connections: int,
    ours: Sequence[str],
    peer: str,
    least: float,
    load: str,
    *,
    unit: str = "request",
) -> list[Target]:
    """Targets: each of ours has `least` times the rate of the peer; nothing where one of them did not take part."""
    return [
        Target(f"{name}: {per_second(unit)} of {peer}, {load}", ratio(*pair), f"≥ {least:g}", _middle(*pair) >= least)
        for name, *pair in _pairs(contestants, ours, peer, lambda one: one.rates(connections))
    ]


def latency_targets(
    contestants: Sequence[Contestant], connections: int, ours: Sequence[str], peer: str, most: float
) -> list[Target]:
    """Targets: each of ours has at most `most` times the peer's p50; nothing where one of them did not take part."""
    found = []
    for name, *pair in _pairs(contestants, ours, peer, lambda one: one.latencies(connections)):
        what = f"{name}: p50 of {peer}, {at(connections)}"
        found.append(Target(what, f"{_middle(*pair):.3f}", f"≤ {most:g}", _middle(*pair) <= most))
    return found


def processor_targets(
    contestants: Sequence[Contestant],
    connections: int,
    ours: Sequence[str],
    peer: str,
    most: float,
    *,
    unit: str = "request",
) -> list[Target]:
    """Targets: a request takes at most `most` times the peer's processor time; all processes of a server count."""
    return [
        Target(
            f"{name}: CPU µs/{unit} of {peer}, {at(connections)}", ratio(*pair), f"≤ {most:g}", _middle(*pair) <= most
        )
        for name, *pair in _pairs(contestants, ours, peer, lambda one: one.costs(connections))
    ]


def pairs_with_before(
    contestants: Sequence[Contestant], connections: Sequence[int], *, unit: str = "request", load: str = "connection"
) -> list[Pair]:
    """The rates of each server beside those of the one that bears its name and `before`; `load`: one of these."""
    return [
        Pair(f"{name}, {several(count, load)}", per_second(unit), one.rates(count), other.rates(count))
        for name, one, other in _with_before(contestants)
        for count in connections
    ]


def costs_with_before(
    contestants: Sequence[Contestant], connections: Sequence[int], *, unit: str = "request", load: str = "connection"
) -> list[Pair]:
    """As `pairs_with_before`, of the processor time a request."""
    return [
        Pair(f"{name}, {several(count, load)}", f"CPU µs/{unit}", one.costs(count), other.costs(count))
        for name, one, other in _with_before(contestants)
        for count in connections
    ]


def _with_before(contestants: Sequence[Contestant]) -> list[tuple[str, Contestant, Contestant]]:
    present = {one.name: one for one in contestants}
    return [(name, one, other) for name, one in present.items() if (other := present.get(name_before(name)))]


def _pairs(
    contestants: Sequence[Contestant], ours: Sequence[str], peer: str, measure: Measure
) -> list[tuple[str, list[float], list[float]]]:
    present = {one.name: one for one in contestants}
    if peer not in present:
        return []
    theirs = measure(present[peer])
    return [(name, measure(present[name]), theirs) for name in ours if name in present]


def _middle(ours: Sequence[float], theirs: Sequence[float]) -> float:
    return paired_ratio(ours, theirs)[0]
