"""TorchServe's metric logs: ts_metrics.log and model_metrics.log, a line for each update, written by a thread."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from msx_frontend.logs.file_mode import DEFAULT
from msx_frontend.logs.log4j_time import log4j_time
from msx_frontend.logs.rotating import RotatingFile
from msx_frontend.metrics.declared import HOSTNAME
from msx_frontend.metrics.family import Series
from msx_frontend.metrics.line import line_ends, metric_line
from msx_frontend.visible import visible

FLUSH_EVERY = 0.5
"""Seconds."""

AT_ONCE = 500
"""Lines that are written at once, before the loop runs again."""


class MetricLine(NamedTuple):
    moment: float
    """Seconds since the epoch."""
    text: str


Mirror = Callable[[str, list[MetricLine]], object]
"""Gets the logger's name and lines, to write them to the console, too."""


class MetricLog:
    def __init__(self, path: Path, name: str, mirror: Mirror | None = None, file_mode: int = DEFAULT) -> None:
        self._file = RotatingFile(path, file_mode=file_mode)
        self._name = name
        self._mirror = mirror
        self._file.create()
        self._entries: list[tuple[Series, float, str, float]] = []

    def append(self, series: Series, value: float, request_ids: str) -> None:
        """Collect an update; this is all that the hot path does."""
        self._entries.append((series, value, request_ids, time.time()))

    def flush(self) -> None:
        """Runs on a thread, never twice at the same time."""
        entries, self._entries = self._entries, []
        for first in range(0, len(entries), AT_ONCE):
            lines = [self._line(*entry) for entry in entries[first : first + AT_ONCE]]
            self._file.write("".join(f"{log4j_time(moment)} - {text}\n" for moment, text in lines))
            if self._mirror is not None:
                self._mirror(self._name, lines)

    def _line(self, series: Series, value: float, request_ids: str, moment: float) -> MetricLine:
        ends = series.ends
        if ends is None:
            ends = series.ends = _ends(series)
        return MetricLine(moment=moment, text=visible(metric_line(ends, value, request_ids, moment)))

    def close(self) -> None:
        self.flush()
        self._file.close()


class MetricLogs:
    """Both metric logs, and the task that writes them."""

    def __init__(self, folder: Path, mirror: Mirror | None = None, file_mode: int = DEFAULT) -> None:
        self.ts = MetricLog(folder / "ts_metrics.log", "TS_METRICS", mirror, file_mode)
        self.model = MetricLog(folder / "model_metrics.log", "MODEL_METRICS", mirror, file_mode)
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


def _ends(series: Series) -> tuple[str, str]:
    family = series.family
    pairs = list(zip(family.labels, series.labels, strict=True))
    hostname = next((text for label, text in pairs if label.lower() == HOSTNAME.lower()), "")
    dimensions = [(label, text) for label, text in pairs if label.lower() != HOSTNAME.lower()]
    return line_ends(family.name, family.unit, dimensions, hostname)
