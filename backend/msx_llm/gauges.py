"""The engine's figures for the server's metrics."""

import asyncio
from collections.abc import Callable

from msx_llm.stats import EngineStats, RequestTimes
from msx_sdk.metrics import Metric, Metrics

EVERY = 1.0
"""Seconds: the server asks for samples as often."""

QUEUED = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)

HELP = {
    "running": "Texts in the batch",
    "waiting": "Texts that wait for a place",
    "preempted": "Texts that had to give their place back for a while",
    "steps": "Steps since the worker's start",
    "blocks_used": "Blocks of the cache of keys and values that hold something",
    "blocks_total": "Blocks of the cache of keys and values",
    "prefix_hit_tokens": "Tokens of placed texts that the cache had already",
    "prefix_placed_tokens": "Tokens of texts that got a place",
    "adapters_loaded": "Adapters in the device's places",
    "adapter_places": "The device's places for adapters",
    "drafted_tokens": "Drafted tokens that steps computed",
    "accepted_tokens": "Drafted tokens that became tokens of texts",
}


class EngineGauges:
    """Sets gauges from `stats` once a second. Their names are in docs/metrics.md."""

    def __init__(self, metrics: Metrics, stats: Callable[[], EngineStats]) -> None:
        self._stats = stats
        self._plain = {name: metrics.gauge(f"msx_llm_{name}", help=text) for name, text in HELP.items()}
        self._queued = metrics.histogram(
            "msx_llm_queue_seconds", "s", buckets=QUEUED, help="Arrival at the engine to the first step"
        )
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
        for name, gauge in self._plain.items():
            gauge.update(getattr(stats, name.removesuffix("_tokens")))
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
