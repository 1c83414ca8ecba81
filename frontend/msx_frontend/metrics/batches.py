"""Gauges and counters of batches and files."""

from __future__ import annotations

from typing import get_args

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from msx_frontend.batches.figures import BatchFigures
from msx_frontend.batches.records import State
from msx_frontend.metrics.carried_counts import CarriedCounts
from msx_frontend.metrics.shown_figures import ShownFigures


class BatchMetrics(ShownFigures[BatchFigures]):
    def __init__(self) -> None:
        self._ended = CarriedCounts("msx_batch_lines_ended", "state", lambda: self.counts(lambda known: known.ended))
        super().__init__()

    @property
    def carried(self) -> tuple[CarriedCounts, ...]:
        """Its counters, which another server goes on with."""
        return (self._ended,)

    def families(self, figures: BatchFigures | None) -> list[Metric]:
        batches = GaugeMetricFamily("msx_batches", "Batches that are kept", labels=("state",))
        lines = GaugeMetricFamily("msx_batch_lines", "Lines of batches without an outcome", labels=("state",))
        ended = CounterMetricFamily("msx_batch_lines_ended", "Lines of batches that have ended", labels=("state",))
        files = GaugeMetricFamily("msx_files", "Files of clients and of batches", labels=())
        size = GaugeMetricFamily("msx_files_bytes", "Bytes of these files", labels=())
        if figures is not None:
            for state in get_args(State):
                batches.add_metric((state,), figures.states.get(state, 0))
            lines.add_metric(("waiting",), figures.waiting)
            lines.add_metric(("running",), figures.running)
            for state, count in self._ended.all.items():
                ended.add_metric((state,), count)
            files.add_metric((), figures.files)
            size.add_metric((), figures.size)
        return [batches, lines, ended, files, size]
