"""When the tokens of a text came, and what that says of many of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True)
class Trace:
    """Times of one request; seconds, by any clock."""

    asked: float
    instants: Sequence[float]
    """One a token."""

    @property
    def first(self) -> float:
        return self.instants[0] - self.asked

    @property
    def gaps(self) -> list[float]:
        return [after - before for before, after in pairwise(self.instants)]

    @property
    def per_token(self) -> float:
        """Seconds from the request to its end, divided by its tokens: waiting weighs most for short answers."""
        return (self.instants[-1] - self.asked) / len(self.instants)


def percentile(values: Iterable[float], share: float) -> float:
    """The percentile by the nearest-rank method."""
    ordered = sorted(values)
    return ordered[max(math.ceil(share * len(ordered)), 1) - 1]


def gaps(traces: Iterable[Trace]) -> list[float]:
    return [gap for trace in traces for gap in trace.gaps]


def together(traces: Sequence[Trace]) -> tuple[float, float]:
    """Span from the instant when all have their first token to the instant when the first has its last."""
    return max(trace.instants[0] for trace in traces), min(trace.instants[-1] for trace in traces)


def throughput(traces: Iterable[Trace], since: float, until: float) -> float:
    """Tokens a second that came after `since` and not after `until`."""
    return sum(since < instant <= until for trace in traces for instant in trace.instants) / (until - since)


def sustained(traces: Sequence[Trace], settled: float = 0.2) -> float:
    """Tokens a second while requests came, without the first part of that time, when there were too few."""
    first, last = min(trace.asked for trace in traces), max(trace.asked for trace in traces)
    return throughput(traces, first + settled * (last - first), last)


def overall(traces: Sequence[Trace]) -> float:
    """Tokens a second from the first request to the last token."""
    return throughput(traces, min(trace.asked for trace in traces), max(trace.instants[-1] for trace in traces))


def within(traces: Iterable[Trace], since: float, until: float) -> list[float]:
    """The gaps that ended in that time."""
    return [after - before for trace in traces for before, after in pairwise(trace.instants) if since < after <= until]
