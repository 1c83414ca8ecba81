"""Figures of vLLM's engine for the server's metrics."""

import asyncio
from collections.abc import Iterable, Mapping
from operator import sub
from typing import Literal, NamedTuple, Protocol

from msx_core.generation.engine_metrics import EVERY, engine_gauges, queue_seconds
from msx_sdk.metrics import Metric, Metrics


class VllmSeries(NamedTuple):
    """One series of vLLM's own, which keeps its name. A counter has its sum since the start, a histogram the sum of
    what was observed, and how much of it is in each bucket alone (`counts`, the last one above all `bounds`)."""

    name: str
    kind: Literal["gauge", "counter", "histogram"]
    labels: Mapping[str, str]
    value: float
    help: str = ""
    bounds: tuple[float, ...] = ()
    counts: tuple[int, ...] = ()


class VllmFigures(NamedTuple):
    """`running` and `waiting` are texts, now; `prefix_hit` and `prefix_placed` are tokens since the start."""

    running: float
    waiting: float
    preempted: float
    blocks_used: float
    blocks_total: float
    prefix_hit: float
    prefix_placed: float


class ReadsFigures(Protocol):
    """Figures as vLLM has them now. All series take milliseconds, in which no token moves."""

    def figures(self) -> VllmFigures: ...
    def series(self) -> Iterable[VllmSeries]: ...


THEIRS = 5
"""vLLM's own series are told this many times less often: scrapes come every ten seconds or more."""


class FiguresTeller:
    """Tells figures to the server: once a second under the names of our engine's metrics, every THEIRS seconds under
    vLLM's own."""

    def __init__(self, metrics: Metrics, reader: ReadsFigures) -> None:
        self._metrics, self._reader = metrics, reader
        self._times = 0
        self._ours = engine_gauges(metrics)
        self._theirs: dict[str, Metric] = {}
        self._told: dict[tuple[str, frozenset[tuple[str, str]]], VllmSeries] = {}
        self._queued = queue_seconds(metrics)
        self._loop = asyncio.get_running_loop()
        self._tell()

    def queued(self, seconds: float) -> None:
        """Record how long a request waited for its first step."""
        self._queued.update(max(seconds, 0.0))

    def stop(self) -> None:
        self._timer.cancel()

    def _tell(self) -> None:
        self._timer = self._loop.call_later(EVERY, self._tell)
        figures = self._reader.figures()
        for name, gauge in self._ours.items():
            gauge.update(getattr(figures, name))
        if self._times % THEIRS == 0:
            for series in self._reader.series():
                self._tell_theirs(series)
        self._times += 1

    def _tell_theirs(self, series: VllmSeries) -> None:
        """Send the change of a counter or a histogram since the last time."""
        metric = self._theirs.get(series.name) or self._new(series)
        if series.kind == "gauge":
            metric.update(series.value, **series.labels)
            return
        key = series.name, frozenset(series.labels.items())
        last, self._told[key] = self._told.get(key), series
        step = series.value - (last.value if last else 0.0)
        if series.kind == "counter":
            if step:
                metric.update(step, **series.labels)
            return
        counts = tuple(map(sub, series.counts, last.counts)) if last else series.counts
        if any(counts):
            metric.merge(counts, step, **series.labels)

    def _new(self, series: VllmSeries) -> Metric:
        name, labels, metrics = series.name, tuple(series.labels), self._metrics
        if series.kind == "histogram":
            made = metrics.histogram(name, "", labels, buckets=series.bounds, help=series.help)
        else:
            make = metrics.gauge if series.kind == "gauge" else metrics.counter
            made = make(name, "", labels, help=series.help)
        self._theirs[name] = made
        return made
