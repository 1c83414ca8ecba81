"""What the engine is doing, for the server's metrics."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from msx_backend.llm.stats import EngineStats, RequestTimes
from msx_sdk.metrics import Metric, Metrics

EVERY = 1.0
"""Seconds, as often as the server asks for samples."""


class Gauges:
    """Of `stats`, once a second. Names: docs/metrics.md."""

    def __init__(self, metrics: Metrics, stats: Callable[[], EngineStats]) -> None:
        self._stats = stats
        self._plain = {
            name: metrics.gauge(f"msx_llm_{name}")
            for name in ("running", "waiting", "preempted", "steps", "blocks_used", "blocks_total")
        }
        self._hit = metrics.gauge("msx_llm_prefix_hit_tokens")
        self._placed = metrics.gauge("msx_llm_prefix_placed_tokens")
        self._queued = metrics.histogram("msx_llm_queue_seconds", "s")
        self._seconds = metrics.gauge("msx_llm_step_seconds", "s", ("part",))
        self._loop = asyncio.get_running_loop()
        self._tell()

    def tell(self, times: RequestTimes) -> None:
        """Of a request that has ended."""
        if times.queued is not None:
            self._queued.update(times.queued)

    def stop(self) -> None:
        self._timer.cancel()

    def _tell(self) -> None:
        self._timer = self._loop.call_later(EVERY, self._tell)
        stats = self._stats()
        for name, gauge in self._plain.items():
            gauge.update(getattr(stats, name))
        self._hit.update(stats.prefix_hit)
        self._placed.update(stats.prefix_placed)
        _tell_parts(self._seconds, stats)


def _tell_parts(gauge: Metric, stats: EngineStats) -> None:
    for part in ("model", "sampling", "scheduling", "messaging"):
        gauge.update(getattr(stats.seconds, part), part=part)
