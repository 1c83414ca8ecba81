"""The engine's figures for the server's metrics."""

import asyncio
from collections.abc import Callable

from msx_core.generation.engine_metrics import EVERY, engine_gauges, queue_seconds
from msx_llm.stats import EngineStats, RequestTimes
from msx_sdk.metrics import Metric, Metrics

HELP = {
    "steps": "Steps since the worker's start",
    "adapters_loaded": "Adapters in the device's places",
    "adapter_places": "The device's places for adapters",
    "drafted_tokens": "Drafted tokens that steps computed",
    "accepted_tokens": "Drafted tokens that became tokens of texts",
}
"""Gauges beside those that every engine has."""


class EngineGauges:
    """Sets gauges from `stats` once a second. Their names are in docs/metrics.md."""

    def __init__(self, metrics: Metrics, stats: Callable[[], EngineStats]) -> None:
        self._stats = stats
        self._plain = engine_gauges(metrics, HELP)
        self._queued = queue_seconds(metrics)
        self._seconds = metrics.gauge("msx_llm_step_seconds", "s", ("part",), help="Time in each part of the steps")
        self._texts = metrics.gauge(
            "msx_llm_adapter_texts",
            labels=("adapter", "state"),
            help="Texts of an adapter that run, or wait for a place",
        )
        self._told: tuple[str, ...] = ()
        self._loop = asyncio.get_running_loop()
        self._tell()

    def tell(self, times: RequestTimes) -> None:
        """Records the times of a request that has ended."""
        if times.queued is not None:
            self._queued.update(times.queued)

    def stop(self) -> None:
        self._timer.cancel()

    def _tell(self) -> None:
        self._timer = self._loop.call_later(EVERY, self._tell)
        stats = self._stats()
        for figure, gauge in self._plain.items():
            gauge.update(getattr(stats, figure))
        _tell_parts(self._seconds, stats)
        self._tell_adapters(stats.adapters)

    def _tell_adapters(self, adapters: dict[str, tuple[int, int]]) -> None:
        """Update the gauges by adapter. Adapters of the last call begin at 0: an unloaded one has no texts any more."""
        for adapter, texts in {**dict.fromkeys(self._told, (0, 0)), **adapters}.items():
            for state, count in zip(("running", "waiting"), texts, strict=True):
                self._texts.update(count, adapter=adapter, state=state)
        self._told = tuple(adapters)


def _tell_parts(gauge: Metric, stats: EngineStats) -> None:
    for part in ("model", "sampling", "scheduling", "messaging"):
        gauge.update(getattr(stats.seconds, part), part=part)
