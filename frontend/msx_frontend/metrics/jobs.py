"""Gauges and counters of jobs, read at each scrape."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from msx_frontend.deferred.figures import JobFigures


class JobMetrics(Collector):
    """Metrics without samples where no requests are deferred."""

    def __init__(self) -> None:
        self._figures: Callable[[], JobFigures | None] = _none
        self._seen: list[Metric] = []
        self.look()

    def show(self, figures: Callable[[], JobFigures]) -> None:
        """Show these figures from now on."""
        self._figures = figures

    def figures(self) -> JobFigures | None:
        """None where no requests are deferred."""
        return self._figures()

    def look(self) -> None:
        """Read the figures on the loop's thread, which owns them."""
        jobs = GaugeMetricFamily("msx_jobs", "Jobs that have not ended", labels=("state",))
        ended = CounterMetricFamily("msx_jobs_ended", "Jobs that have ended", labels=("state",))
        oldest = GaugeMetricFamily("msx_jobs_oldest_seconds", "Age of the oldest job that has not ended", labels=())
        size = GaugeMetricFamily("msx_store_bytes", "Bytes of store.db and its log on the disk", labels=())
        waiting = GaugeMetricFamily("msx_callbacks_waiting", "Callbacks that were not taken yet", labels=())
        tries = CounterMetricFamily("msx_callbacks", "Tries of callbacks by what became of them", labels=("result",))
        if (figures := self._figures()) is not None:
            jobs.add_metric(("queued",), figures.queued)
            jobs.add_metric(("running",), figures.running)
            oldest.add_metric((), figures.oldest)
            size.add_metric((), figures.size)
            waiting.add_metric((), figures.callbacks)
            for state, count in figures.ended.items():
                ended.add_metric((state,), count)
            for result, count in figures.tries.items():
                tries.add_metric((result,), count)
        self._seen = [jobs, ended, oldest, size, waiting, tries]

    def describe(self) -> Iterable[Metric]:
        return self._seen

    def collect(self) -> Iterable[Metric]:
        return self._seen


def _none() -> None:
    return None
