"""The last hour of each model version, in figures of ten seconds each: what the console draws.

A ring of numbers of four bytes, at most MOST_BYTES in all: versions beyond that push out the one that has been idle
longest. A version that nobody has asked has no ring.
"""

import time
from array import array
from collections.abc import Iterable
from math import isnan, nan
from operator import sub
from typing import NamedTuple, Protocol

from msx_frontend.metrics.percentiles import percentile, upper_bound
from msx_frontend.metrics.traces import Traces

EVERY = 10
"""Seconds from one point to the next."""
POINTS = 360
"""An hour."""
MOST_BYTES = 2 << 20

FIELDS = (
    "requests",
    "refused",
    "failed",
    "p50",
    "p99",
    "queued",
    "running",
    "batch",
    "tokens",
    "kv",
    "workers",
)
"""Requests, those of them with a status from 400 and from 500, milliseconds, requests that wait and run at the moment,
requests per batch, tokens per second, share of the cache of keys and values, workers that are ready."""

BYTES = POINTS * len(FIELDS) * 4
MOST_SERIES = MOST_BYTES // BYTES

ALL = ("", "")
"""Stands for all versions together."""
LOOKED_AT = 6
"""Points whose requests say what is slow: a minute."""

Labels = tuple[str, str]
Point = tuple[float, ...]


class Totals(NamedTuple):
    """Counted since the start of the server."""

    requests: float
    refused: float
    failed: float
    times: tuple[int, ...]
    """Requests by the buckets of `bounds`."""
    batches: int
    batched: float
    tokens: float


class Watched(Protocol):
    """A model version."""

    @property
    def labels(self) -> Labels: ...

    @property
    def traces(self) -> Traces: ...

    def totals(self) -> Totals: ...

    def gauges(self) -> dict[str, float]: ...


class RecentSeries:
    """The points of one version. `last`: the number of its newest point."""

    def __init__(self) -> None:
        self._values = array("f", [nan]) * (POINTS * len(FIELDS))
        self.last = -1
        self.busy = 0
        """The number of the last point with a request."""

    @property
    def size(self) -> int:
        return self._values.itemsize * len(self._values)

    def put(self, number: int, point: Point) -> None:
        """Points between the last one and this are unknown."""
        width = len(FIELDS)
        for missed in range(max(self.last + 1, number - POINTS + 1), number):
            start = missed % POINTS * width
            self._values[start : start + width] = array("f", [nan]) * width
        start = number % POINTS * width
        self._values[start : start + width] = array("f", point)
        self.last = number
        if point[0]:
            self.busy = number

    def points(self, upto: int) -> dict[str, list[float | None]]:
        """The last hour by field, from old to new; None where nothing is known."""
        width, found = len(FIELDS), {}
        for column, field in enumerate(FIELDS):
            values = (self._at(number, column, width) for number in range(upto - POINTS + 1, upto + 1))
            found[field] = [None if isnan(value) else round(value, 4) for value in values]
        return found

    def latest(self) -> dict[str, float | None]:
        start = self.last % POINTS * len(FIELDS)
        values = self._values[start : start + len(FIELDS)]
        return {field: None if isnan(value) else round(value, 4) for field, value in zip(FIELDS, values, strict=True)}

    def _at(self, number: int, column: int, width: int) -> float:
        if not max(self.last - POINTS, -1) < number <= self.last:
            return nan
        return self._values[number % POINTS * width + column]


class RecentHistory:
    """`bounds` are those of the histograms of the time of a request, in seconds."""

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self.series: dict[Labels, RecentSeries] = {}
        self._before: dict[Labels, Totals] = {}
        self._times: dict[Labels, list[tuple[int, ...]]] = {}
        """Requests of the last points by their times, by version."""
        self.number = -1
        """Number of the newest point."""
        self.ended = 0.0
        """When it ended: seconds since the epoch."""

    @property
    def size(self) -> int:
        """Bytes of all rings."""
        return sum(series.size for series in self.series.values())

    def sample(self, versions: Iterable[Watched], seconds: float = EVERY) -> None:
        """One more point of each version. `seconds`: how long ago the last call was."""
        self.number += 1
        self.ended = time.time()
        now, changes, levels = {}, [], []
        for version in versions:
            labels, totals, gauges = version.labels, version.totals(), version.gauges()
            change = _since(self._before.get(labels), totals)
            now[labels] = totals
            self._put(labels, change, level := _levels(gauges), seconds)
            self._judge(version, change)
            changes.append(change)
            levels.append(level)
        self._before = now
        self._times = {labels: times for labels, times in self._times.items() if labels in now}
        self._put(ALL, _together(changes, len(self._bounds) + 1), _summed(levels), seconds, always=True)
        self._forget(now)

    def _put(
        self, labels: Labels, change: Totals, levels: tuple[float, ...], seconds: float, *, always: bool = False
    ) -> None:
        if labels not in self.series:
            if not (always or change.requests or levels[0]):
                return
            self._make_room()
            self.series[labels] = RecentSeries()
        self.series[labels].put(self.number, self._point(change, levels, seconds))

    def _point(self, change: Totals, levels: tuple[float, ...], seconds: float) -> Point:
        queued, running, kv, workers = levels
        p50, p99 = (percentile(self._bounds, change.times, share) * 1000 for share in (0.5, 0.99))
        batch = change.batched / change.batches if change.batches else nan
        counted = change.requests, change.refused, change.failed
        return (*counted, p50, p99, queued, running, batch, change.tokens / seconds, kv, workers)

    def _judge(self, version: Watched, change: Totals) -> None:
        times = self._times.setdefault(version.labels, [])
        times.append(change.times)
        del times[:-LOOKED_AT]
        counts = [sum(column) for column in zip(*times, strict=True)]
        version.traces.judged(upper_bound(self._bounds, counts, 0.99))

    def _make_room(self) -> None:
        if len(self.series) >= MOST_SERIES:
            idle = min((labels for labels in self.series if labels != ALL), key=lambda one: self.series[one].busy)
            del self.series[idle]

    def _forget(self, known: Iterable[Labels]) -> None:
        """Versions that have been gone for an hour."""
        for labels in set(self.series) - {ALL, *known}:
            if self.series[labels].last <= self.number - POINTS:
                del self.series[labels]


def _levels(gauges: dict[str, float]) -> tuple[float, ...]:
    names = ("msx_requests_queued", "msx_requests_running", "msx_kv_cache_utilization", "msx_workers_ready")
    return tuple(float(gauges.get(name, 0.0)) for name in names)


def _summed(levels: list[tuple[float, ...]]) -> tuple[float, ...]:
    """Sum of the levels of all versions; of caches the fullest."""
    if not levels:
        return 0.0, 0.0, 0.0, 0.0
    queued, running, kv, workers = zip(*levels, strict=True)
    return sum(queued), sum(running), max(kv), sum(workers)


def _since(before: Totals | None, now: Totals) -> Totals:
    if before is None:
        return now
    return Totals(
        requests=now.requests - before.requests,
        refused=now.refused - before.refused,
        failed=now.failed - before.failed,
        times=tuple(map(sub, now.times, before.times)),
        batches=now.batches - before.batches,
        batched=now.batched - before.batched,
        tokens=now.tokens - before.tokens,
    )


def _together(changes: list[Totals], buckets: int) -> Totals:
    times = [change.times for change in changes] or [(0,) * buckets]
    summed = tuple(sum(column) for column in zip(*times, strict=True))
    return Totals(
        requests=sum(change.requests for change in changes),
        refused=sum(change.refused for change in changes),
        failed=sum(change.failed for change in changes),
        times=summed,
        batches=sum(change.batches for change in changes),
        batched=sum(change.batched for change in changes),
        tokens=sum(change.tokens for change in changes),
    )
