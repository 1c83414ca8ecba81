"""Figures of vLLM's engine for the server's metrics."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Literal, NamedTuple

from msx_sdk.metrics import Metric, Metrics

EVERY = 1.0
"""Seconds: the server asks for samples as often."""

QUEUED = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)

HELP = {
    "running": ("running", "Texts in the batch"),
    "waiting": ("waiting", "Texts that wait for a place"),
    "preempted": ("preempted", "Texts that had to give their place back for a while"),
    "blocks_used": ("blocks_used", "Blocks of the cache of keys and values that hold something"),
    "blocks_total": ("blocks_total", "Blocks of the cache of keys and values"),
    "prefix_hit_tokens": ("prefix_hit", "Tokens of placed texts that the cache had already"),
    "prefix_placed_tokens": ("prefix_placed", "Tokens of texts that got a place"),
}
"""The names of our engine's metrics, each with the member of `VllmFigures` and what it means."""


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
        self._ours = {name: metrics.gauge(f"msx_llm_{name}", help=text) for name, (_, text) in HELP.items()}
        self._theirs: dict[str, Metric] = {}
        self._told: dict[tuple[str, frozenset[tuple[str, str]]], float] = {}
        self._queued = metrics.histogram(
            "msx_llm_queue_seconds", "s", buckets=QUEUED, help="Arrival at the engine to the first step"
        )
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
            gauge.update(getattr(figures, HELP[name][0]))
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
