"""Metrics in TorchServe's form: with their declared names and units, and logged if configured.

Plain numbers that only the loop's thread changes: an update is cheaper than a lock.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from math import isnan
from typing import Protocol

from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from msx_frontend.metrics.buckets import default_buckets
from msx_frontend.metrics.numbers import HistogramFamily

MOST_SERIES = 1000
"""Series of one metric at most: a handler that makes up label values must not fill the memory."""


class LogsMetrics(Protocol):
    def append(self, series: Series, value: float, request_ids: str) -> None: ...


class SampleTarget(Protocol):
    def add(self, value: float, request_ids: str = "") -> None: ...
    def add_all(self, values: Sequence[float], scale: float = 1.0) -> None: ...


class DiscardedSamples:
    """Ignores samples of a metric that is not declared."""

    def add(self, value: float, request_ids: str = "") -> None:
        return None

    def add_all(self, values: Sequence[float], scale: float = 1.0) -> None:
        return None


class Series:
    """One combination of label values. `add` counts up, sets or observes, depending on the kind."""

    __slots__ = ("_log", "ends", "family", "labels", "value")

    def __init__(self, family: MetricFamily, labels: tuple[str, ...]) -> None:
        self.family = family
        self.labels = labels
        self.value = 0.0
        self._log = family.log
        self.ends: tuple[str, str] | None = None
        """The text of its lines in the metric log before and after the value; the log makes it."""

    def add(self, value: float, request_ids: str = "") -> None:
        """Each kind has its own method, which saves a call."""
        raise NotImplementedError

    def add_all(self, values: Sequence[float], scale: float = 1.0) -> None:
        for value in values:
            self.add(value * scale)

    @property
    def counts(self) -> list[float]:
        """See `HandedSeries`; empty for a gauge."""
        return []

    @property
    def bounds(self) -> tuple[float, ...]:
        """Upper bounds of a histogram's buckets."""
        return ()

    def count(self, counts: Sequence[float]) -> None:
        """Add what the same series has counted in another server. Raises ValueError for other buckets."""


class CounterSeries(Series):
    __slots__ = ()

    @property
    def counts(self) -> list[float]:
        return [self.value]

    def count(self, counts: Sequence[float]) -> None:
        self.value += sum(counts)

    def add(self, value: float, request_ids: str = "") -> None:
        if not value >= 0:
            raise ValueError("a counter cannot go down, nor count what is not a number")
        self.value += value
        if self._log is not None:
            self._log.append(self, value, request_ids)

    def add_all(self, values: Sequence[float], scale: float = 1.0) -> None:
        if self._log is None:
            self.value += sum(values) * scale
        else:
            super().add_all(values, scale)


class GaugeSeries(Series):
    __slots__ = ()

    def add(self, value: float, request_ids: str = "") -> None:
        self.value = value
        if self._log is not None:
            self._log.append(self, value, request_ids)

    def add_all(self, values: Sequence[float], scale: float = 1.0) -> None:
        super().add_all(values[-1:] if self._log is None else values, scale)


class HistogramSeries(Series):
    __slots__ = ("_histogram", "_observe")

    def __init__(self, family: MetricFamily, labels: tuple[str, ...], bounds: tuple[float, ...] = ()) -> None:
        super().__init__(family, labels)
        assert family.histogram is not None
        self._histogram = family.histogram.with_bounds(labels, bounds)
        self._observe = self._histogram.observe

    @property
    def counts(self) -> list[float]:
        return self._histogram.all_counts

    @property
    def bounds(self) -> tuple[float, ...]:
        return self._histogram.bounds

    def count(self, counts: Sequence[float]) -> None:
        self._histogram.add(counts)

    def add(self, value: float, request_ids: str = "") -> None:
        if isnan(value):
            raise ValueError("a histogram has no bucket for what is not a number")
        self._observe(value)
        if self._log is not None:
            self._log.append(self, value, request_ids)

    def merge(self, bounds: tuple[float, ...], counts: tuple[int, ...], total: float) -> None:
        """Add observations that were counted already; the metric log, which is of single ones, has none of them."""
        if len(counts) != len(bounds) + 1 or min(counts) < 0 or isnan(total):
            raise ValueError(f"it has {len(bounds)} buckets, which the counts {list(counts)} with their sum do not fit")
        self._histogram.merge(bounds, counts, total)


_SERIES: dict[str, type[Series]] = {"counter": CounterSeries, "gauge": GaugeSeries}


class MetricFamily(Collector):
    def __init__(
        self,
        name: str,
        kind: str,
        unit: str,
        labels: Sequence[str],
        registry: CollectorRegistry | None,
        log: LogsMetrics | None = None,
        *,
        help: str = "",
        buckets: tuple[float, ...] = (),
    ) -> None:
        """Raises ValueError for a name that is not valid or is in use. Without a registry it is only logged.

        Without `help` and `buckets` they are the unit's.
        """
        self.name = name
        self.kind = kind
        self.unit = unit
        self.labels = tuple(labels)
        self.log = log
        self.help = help or f"Torchserve prometheus {kind} metric with unit: {unit}"
        self._series: dict[tuple[str, ...], Series] = {}
        self.histogram: HistogramFamily | None = None
        if kind == "histogram":
            bounds = buckets or default_buckets(unit)
            self.histogram = HistogramFamily(name, self.help, self.labels, bounds, None)
        self._registry = registry
        if registry is not None:
            registry.register(self)

    def remove(self, values: tuple[str, ...]) -> None:
        """Stop exposing the series of these label values."""
        self._series.pop(values, None)
        if self.histogram is not None:
            self.histogram.remove(*values)

    @property
    def shape(self) -> list[str]:
        """See `CountedFamily`."""
        return [self.kind, *(self.labels if self.histogram is None else self.histogram.shape)]

    def counts(self) -> Iterator[tuple[tuple[str, ...], list[float]]]:
        """See `CountedFamily`. Gauges do not count."""
        return ((labels, counts) for labels, one in self._series.items() if (counts := one.counts))

    def add_counts(self, labels: tuple[str, ...], counts: Sequence[float]) -> None:
        self.series(labels).count(counts)

    @property
    def empty(self) -> bool:
        return not self._series

    def close(self) -> None:
        """The family was removed, and its name is free."""
        if self._registry is not None:
            self._registry.unregister(self)

    def series(self, values: tuple[str, ...], bounds: tuple[float, ...] = ()) -> Series:
        """The series of these label values, made at the first use: one of a histogram with `bounds`, if there are any,
        in place of the family's. Raises ValueError when there are too many."""
        found = self._series.get(values)
        if found is None:
            if len(self._series) >= MOST_SERIES:
                raise ValueError(f"a metric may have at most {MOST_SERIES} combinations of label values")
            made = HistogramSeries(self, values, bounds) if self.histogram else _SERIES[self.kind](self, values)
            found = self._series[values] = made
        return found

    def labels_not_in(self, known: Container[str]) -> list[str]:
        return [label for label in self.labels if label not in known]

    def collect(self) -> Iterable[Metric]:
        """A counter has the type "unknown", which exposition.py replaces by "counter": else `_total` would be added."""
        if self.histogram is not None:
            return self.histogram.collect()
        metric = Metric(self.name, self.help, "gauge" if self.kind == "gauge" else "unknown")
        for values, series in list(self._series.items()):
            metric.add_sample(self.name, dict(zip(self.labels, values, strict=True)), series.value)
        return [metric]
