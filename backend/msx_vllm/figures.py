"""Figures of vLLM's engine for the server's metrics."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Literal, NamedTuple

from msx_core.generation.engine_metrics import EVERY, engine_gauges, queue_seconds
from msx_sdk.metrics import Metric, Metrics


class VllmSeries(NamedTuple):
    """One series of vLLM's own, which keeps its name; a counter has its sum since the start."""

    name: str
    kind: Literal["gauge", "counter"]
    labels: Mapping[str, str]
    value: float


class VllmFigures(NamedTuple):
    """`running` and `waiting` are texts, now; `prefix_hit` and `prefix_placed` are tokens since the start."""

    series: tuple[VllmSeries, ...]
    running: float
    waiting: float
    preempted: float
    blocks_used: float
    blocks_total: float
    prefix_hit: float
    prefix_placed: float


class FiguresTeller:
    """Tells `read` to the server once a second, under the names of our engine's metrics and under vLLM's own."""

    def __init__(self, metrics: Metrics, read: Callable[[], VllmFigures]) -> None:
        self._metrics, self._read = metrics, read
        self._ours = engine_gauges(metrics)
        self._theirs: dict[str, Metric] = {}
        self._told: dict[tuple[str, frozenset[tuple[str, str]]], float] = {}
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
        figures = self._read()
        for name, gauge in self._ours.items():
            gauge.update(getattr(figures, name))
        for series in figures.series:
            self._tell_theirs(series)

    def _tell_theirs(self, series: VllmSeries) -> None:
        """A counter adds what has come since the last time."""
        metric = self._theirs.get(series.name)
        if metric is None:
            make = self._metrics.gauge if series.kind == "gauge" else self._metrics.counter
            metric = self._theirs[series.name] = make(series.name, labels=tuple(series.labels))
        step = series.value
        if series.kind == "counter":
            key = series.name, frozenset(series.labels.items())
            step, self._told[key] = series.value - self._told.get(key, 0.0), series.value
        if step or series.kind == "gauge":
            metric.update(step, **series.labels)
