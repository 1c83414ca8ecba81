"""Parts of the console, as values by name: only those that have changed are sent again."""

import os
import platform
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import psutil

from msx_frontend import __version__
from msx_frontend.config import ServerConfig
from msx_frontend.logs.recent import RecentLines
from msx_frontend.metrics import ServerMetrics
from msx_frontend.metrics.history import ALL, EVERY, FIELDS, POINTS, RecentHistory
from msx_frontend.models.describe import describe
from msx_frontend.models.health import Health
from msx_frontend.models.registry import Registry
from msx_frontend.models.versions.model_version import ModelVersion

Part = tuple[str, Any]
"""A name, such as "version m 1.0", and a value that JSON has."""


class Sources(NamedTuple):
    """Where the values come from."""

    config: ServerConfig
    registry: Registry
    health: Health
    metrics: ServerMetrics
    devices: Callable[[], list[dict[str, Any]]]
    cluster: Callable[[], dict[str, Any]] | None = None


class ConsoleParts:
    def __init__(self, sources: Sources, history: RecentHistory, lines: RecentLines) -> None:
        self._sources, self._history, self._lines = sources, history, lines
        self._began = time.time()
        self._process = psutil.Process()
        self.addresses: dict[str, str] = {}
        """Address of each listener."""

    def __iter__(self) -> Iterator[Part]:
        """Each takes a fraction of a millisecond."""
        sources = self._sources
        yield "server", self._server()
        yield "devices", sources.devices()
        yield "cluster", sources.cluster() if sources.cluster is not None else None
        yield "jobs", self._jobs()
        yield "batches", self._batches()
        yield "figures", self._figures(ALL)
        for version in sources.registry.all_versions():
            name = " ".join(version.labels)
            yield f"version {name}", self._version(version)
            if (figures := self._figures(version.labels)) is not None:
                yield f"figures {name}", figures

    def _jobs(self) -> dict[str, Any] | None:
        """None where no requests are deferred. Without their ages, which would be sent each second."""
        figures = self._sources.metrics.jobs.figures()
        if figures is None:
            return None
        counts = {"queued": figures.queued, "running": figures.running, "ended": figures.ended}
        return {**counts, "size": figures.size, "callbacks": figures.callbacks}

    def _batches(self) -> dict[str, Any] | None:
        """None where no batches are run."""
        figures = self._sources.metrics.batches.figures()
        if figures is None:
            return None
        states = {state: count for state, count in figures.states.items() if count}
        return {**figures._asdict(), "states": states}

    def _server(self) -> dict[str, Any]:
        config, health = self._sources.config, self._sources.health
        return {
            "version": __version__,
            "python": platform.python_version(),
            "host": self._sources.metrics.hostname,
            "pid": os.getpid(),
            "began": self._began,
            "memory": self._process.memory_info().rss >> 20 << 20,
            "ready": health.ready(),
            "health": health.detail(),
            "draining": health.draining,
            "addresses": self.addresses,
            "settings": {
                "enable_model_api": config.enable_model_api,
                "console_upload": config.console_upload,
                "max_request_size": config.max_request_size,
            },
            "history": {"every": EVERY, "points": POINTS, "fields": FIELDS},
        }

    def _version(self, version: ModelVersion) -> dict[str, Any]:
        labels, registry = version.labels, self._sources.registry
        queued, running = version.queue.counts()
        return {
            **describe(version),
            "default": registry.is_default(version),
            "workflow": version.source.workflow or None,
            "queued": queued,
            "running": running,
            "lines": self._lines.last(labels),
            "traces": version.metrics.traces.last,
        }

    def _figures(self, labels: tuple[str, str]) -> dict[str, Any] | None:
        series = self._history.series.get(labels)
        if series is None or series.last < 0:
            return None
        return {"number": series.last, "at": round(self._history.ended, 1), **series.latest()}
