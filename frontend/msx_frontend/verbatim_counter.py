"""Counters under the name that they were given, which TorchServe's dashboards ask for: no `_total` is added."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from prometheus_client import CollectorRegistry, Counter, disable_created_metrics, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

disable_created_metrics()  # type: ignore[no-untyped-call]  # a second sample for each of ours, which nobody reads

_UNTYPED = re.compile(rb"^(# TYPE \S+) untyped$", re.MULTILINE)


class VerbatimCounter(Collector):
    def __init__(self, name: str, text: str, labels: Sequence[str], registry: CollectorRegistry) -> None:
        """Raises ValueError for a name that is no metric's or is in use."""
        self._name, self._text = name, text
        self._counter = Counter(name, text, labels, registry=None)
        self.labels = self._counter.labels
        self.inc = self._counter.inc
        registry.register(self)

    def describe(self) -> Iterable[Metric]:
        """Prometheus_client writes `_total` behind the name of whatever calls itself a counter."""
        return [Metric(self._name, self._text, "unknown")]

    def collect(self) -> Iterable[Metric]:
        [named] = self.describe()
        named.samples = [sample._replace(name=self._name) for own in self._counter.collect() for sample in own.samples]
        return [named]


def exposition(registry: Collector) -> bytes:
    """Prometheus' text format, in which only counters of this module are of an unknown type."""
    return _UNTYPED.sub(rb"\1 counter", generate_latest(registry))
