"""TorchServe's metric logs: ts_metrics.log and model_metrics.log, a line an update, written in gathers on a thread."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

from msx_frontend.metrics.declared import HOSTNAME
from msx_frontend.metrics.family import Series
from msx_frontend.metrics.line import log4j_time, metric_line
from msx_frontend.rotating import RotatingFile

FLUSH_EVERY = 0.5
"""Seconds."""

Mirror = Callable[[str, str, float], object]
"""Logger's name, line, seconds since the epoch: the same on the console."""


class MetricLog:
    def __init__(self, path: Path, name: str, mirror: Mirror | None = None) -> None:
        self._file, self._name, self._mirror = RotatingFile(path), name, mirror
        self._entries: list[tuple[Series, float, str, float]] = []

    def append(self, series: Series, value: float, request_ids: str) -> None:
        """The hot path's share of it."""
        self._entries.append((series, value, request_ids, time.time()))

    def flush(self) -> None:
        """On a thread; by one at a time."""
        entries, self._entries = self._entries, []
        lines = [(moment, _line(series, value, ids, moment)) for series, value, ids, moment in entries]
        self._file.write("".join(f"{log4j_time(moment)} - {line}\n" for moment, line in lines))
        if self._mirror is not None:
            for moment, line in lines:
                self._mirror(self._name, line, moment)

    def close(self) -> None:
        self.flush()
        self._file.close()


class MetricLogs:
    """Both, and the task that writes them."""

    def __init__(self, folder: Path, mirror: Mirror | None = None) -> None:
        self.ts = MetricLog(folder / "ts_metrics.log", "TS_METRICS", mirror)
        self.model = MetricLog(folder / "model_metrics.log", "MODEL_METRICS", mirror)
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._flush_again_and_again(), name="metric-logs")

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        for log in (self.ts, self.model):
            await asyncio.to_thread(log.close)

    async def _flush_again_and_again(self) -> None:
        while True:
            await asyncio.sleep(FLUSH_EVERY)
            for log in (self.ts, self.model):
                await asyncio.to_thread(log.flush)


def _line(series: Series, value: float, request_ids: str, moment: float) -> str:
    family = series.family
    pairs = list(zip(family.labels, series.labels, strict=True))
    hostname = next((text for label, text in pairs if label.lower() == HOSTNAME.lower()), "")
    dimensions = [(label, text) for label, text in pairs if label.lower() != HOSTNAME.lower()]
    return metric_line(family.name, family.unit, value, dimensions, hostname, request_ids, moment)
