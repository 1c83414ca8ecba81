"""Gauges and counters of jobs."""

from __future__ import annotations

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from msx_frontend.deferred.figures import JobFigures
from msx_frontend.metrics.carried_counts import CarriedCounts
from msx_frontend.metrics.shown_figures import ShownFigures


class JobMetrics(ShownFigures[JobFigures]):
    def __init__(self) -> None:
        self._ended = CarriedCounts("msx_jobs_ended", "state", lambda: self.counts(lambda figures: figures.ended))
        self._tries = CarriedCounts("msx_callbacks", "result", lambda: self.counts(lambda figures: figures.tries))
        super().__init__()

    @property
    def carried(self) -> tuple[CarriedCounts, ...]:
        """Its counters, which another server goes on with."""
        return self._ended, self._tries

    def families(self, figures: JobFigures | None) -> list[Metric]:
        jobs = GaugeMetricFamily("msx_jobs", "Jobs that have not ended", labels=("state",))
        ended = CounterMetricFamily("msx_jobs_ended", "Jobs that have ended", labels=("state",))
        oldest = GaugeMetricFamily("msx_jobs_oldest_seconds", "Age of the oldest job that has not ended", labels=())
        size = GaugeMetricFamily("msx_store_bytes", "Bytes of store.db and its log on the disk", labels=())
        waiting = GaugeMetricFamily("msx_callbacks_waiting", "Callbacks that were not taken yet", labels=())
        tries = CounterMetricFamily("msx_callbacks", "Tries of callbacks by what became of them", labels=("result",))
        if figures is not None:
            jobs.add_metric(("queued",), figures.queued)
            jobs.add_metric(("running",), figures.running)
            oldest.add_metric((), figures.oldest)
            size.add_metric((), figures.size)
            waiting.add_metric((), figures.callbacks)
            for state, count in self._ended.all.items():
                ended.add_metric((state,), count)
            for result, count in self._tries.all.items():
                tries.add_metric((result,), count)
        return [jobs, ended, oldest, size, waiting, tries]
