"""Metrics of a handler."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping, Sequence

from msx_core.batch import current_request_ids
from msx_core.metrics.descriptors import MetricDescriptor, MetricDescriptors, checked_buckets, checked_help
from msx_core.metrics.kinds import COUNTER, GAUGE, HISTOGRAM, Dimensions, checked_kind, labels_of
from msx_core.metrics.samples import Samples

__all__ = ["CachedMetric", "Metric", "MetricNotFound", "Metrics"]

log = logging.getLogger("msx.metrics")


class MetricNotFound(KeyError):
    """A metric of this name and type is not in the cache."""

    def __str__(self) -> str:
        return str(self.args[0])


class Metric:
    """A typed metric with fixed label names; `update` takes their values by name."""

    def __init__(self, metrics: Metrics, name: str, kind: str, unit: str, labels: tuple[str, ...]) -> None:
        self._metrics, self.name, self.kind, self.unit, self.labels = metrics, name, kind, unit, labels

    def update(self, value: float = 1.0, **labels: str) -> None:
        """Add, set or observe `value`. Raises ValueError for other label names or a negative counter step."""
        if self.kind == COUNTER and value < 0:
            raise ValueError(f"counter {self.name} cannot go down: {value}")
        self._metrics.record(self.name, self.kind, self.unit, value, self._in_order(labels))

    def merge(self, counts: Sequence[int], total: float, **labels: str) -> None:
        """Add observations that a library has counted already: `counts` has a number for each of the histogram's
        `buckets` alone, and one for values above them; `total` is their sum. Raises ValueError for other label names,
        another number of counts, a negative one, and a metric without buckets of its own."""
        buckets = self._metrics.descriptors.buckets_of(self.name)
        if not buckets or len(counts) != len(buckets) + 1 or min(counts) < 0:
            raise ValueError(
                f"{self.kind} {self.name} has {len(buckets)} buckets of its own: it takes counts of histograms with "
                f"one more number than buckets, none negative, got {list(counts)}"
            )
        self._metrics.record(
            self.name, self.kind, self.unit, total, self._in_order(labels), counts=tuple(map(int, counts))
        )

    def _in_order(self, labels: Mapping[str, str]) -> dict[str, str]:
        if tuple(sorted(labels)) != tuple(sorted(self.labels)):
            raise ValueError(f"metric {self.name} has the labels {list(self.labels)}, got {sorted(labels)}")
        return {name: labels[name] for name in self.labels}


class CachedMetric:
    """TorchServe's metric, as `add_metric_to_cache` returns it: values of dimensions are given in their order."""

    def __init__(self, metrics: Metrics, name: str, unit: str, names: Sequence[str], kind: str) -> None:
        self._metrics, self.metric_name, self.unit = metrics, name, unit
        self.dimension_names, self.metric_type = list(names), kind

    def add_or_update(self, value: float, dimension_values: Sequence[str] = (), request_id: str = "") -> None:
        """Add to a counter, set a gauge, observe in a histogram.

        Too few or too many values are logged and left out, as TorchServe does: a metric never fails a prediction.
        """
        if len(dimension_values) != len(self.dimension_names):
            got = list(dimension_values)
            log.error("metric %s has the dimensions %s, got %s", self.metric_name, self.dimension_names, got)
            return
        self._record(value, request_id, dict(zip(self.dimension_names, dimension_values, strict=True)))

    def update(self, value: float, request_id: str = "", dimensions: Dimensions | None = None) -> None:
        """TorchServe's older call."""
        self._record(value, request_id, labels_of(dimensions))

    def _record(self, value: float, request_id: str, labels: Mapping[str, str]) -> None:
        self._metrics.add_sample(self.metric_name, self.metric_type, self.unit, value, labels, request_id)


class Metrics(Samples):
    """The type of `context.metrics`. Thread-safe. At most 10,000 samples wait for the worker."""

    def __init__(self, model_name: str = "", lock: threading.Lock | None = None) -> None:
        super().__init__(model_name, lock)
        self.descriptors = MetricDescriptors()
        self.cache: dict[str, dict[str, CachedMetric]] = {COUNTER: {}, GAUGE: {}, HISTOGRAM: {}}
        """Metrics that `get_metric` finds, by type and name. The first two are TorchServe's own."""
        for name in ("HandlerTime", "PredictionTime"):
            self.add_metric_to_cache(name, "ms", ["ModelName", "Level"], GAUGE)

    def counter(self, name: str, unit: str = "count", labels: tuple[str, ...] = (), *, help: str = "") -> Metric:
        """Summed over the workers of a version. `help` is what Prometheus shows. Raises ValueError above 1000
        characters."""
        return self._own(name, COUNTER, unit, labels, MetricDescriptor(str(name), COUNTER, checked_help(name, help)))

    def gauge(self, name: str, unit: str = "count", labels: tuple[str, ...] = (), *, help: str = "") -> Metric:
        """Each worker has its own. Otherwise as `counter`."""
        return self._own(name, GAUGE, unit, labels, MetricDescriptor(str(name), GAUGE, checked_help(name, help)))

    def histogram(
        self,
        name: str,
        unit: str = "ms",
        labels: tuple[str, ...] = (),
        *,
        buckets: Sequence[float] | None = None,
        help: str = "",
    ) -> Metric:
        """As `counter`. `buckets` are upper bounds in `unit`, ascending, at most 100; None is the server's for the
        unit. Raises ValueError for others, and for a name that has other buckets already."""
        form = MetricDescriptor(str(name), HISTOGRAM, checked_help(name, help), checked_buckets(name, buckets))
        return self._own(name, HISTOGRAM, unit, labels, form)

    def _own(self, name: str, kind: str, unit: str, labels: tuple[str, ...], form: MetricDescriptor) -> Metric:
        self.descriptors.tell(form)
        return Metric(self, name, kind, unit, labels)

    def add_counter(
        self, name: str, value: float, idx: int | None = None, dimensions: Dimensions | None = None
    ) -> None:
        self.add_metric(name, value, "count", idx, dimensions, COUNTER)

    def add_time(
        self,
        name: str,
        value: float,
        idx: int | None = None,
        unit: str = "ms",
        dimensions: Dimensions | None = None,
        metric_type: str = GAUGE,
    ) -> None:
        if unit not in ("ms", "s"):
            raise ValueError(f"the unit of the time {name!r} is 'ms' or 's', not {unit!r}")
        self.add_metric(name, value, unit, idx, dimensions, metric_type)

    def add_size(
        self,
        name: str,
        value: float,
        idx: int | None = None,
        unit: str = "MB",
        dimensions: Dimensions | None = None,
        metric_type: str = GAUGE,
    ) -> None:
        if unit not in ("MB", "kB", "GB", "B"):
            raise ValueError(f"the unit of the size {name!r} is 'MB', 'kB', 'GB' or 'B', not {unit!r}")
        self.add_metric(name, value, unit, idx, dimensions, metric_type)

    def add_percent(
        self,
        name: str,
        value: float,
        idx: int | None = None,
        dimensions: Dimensions | None = None,
        metric_type: str = GAUGE,
    ) -> None:
        self.add_metric(name, value, "percent", idx, dimensions, metric_type)

    def add_error(self, name: str, value: float | str, dimensions: Dimensions | None = None) -> None:
        """Adds errors with Level=Error. A text counts as one error and is logged, since texts as labels would never
        end."""
        if isinstance(value, str):
            log.error("%s: %s", name, value)
            value = 1.0
        labels = labels_of(dimensions)
        labels.setdefault("Level", "Error")
        self._add(name, COUNTER, "", value, labels)

    def add_metric(
        self,
        name: str,
        value: float,
        unit: str = "count",
        idx: int | None = None,
        dimensions: Dimensions | None = None,
        metric_type: str = COUNTER,
    ) -> None:
        """TorchServe's call; ModelName and Level=Model are added. `idx` is the request's place, for logs only."""
        labels = labels_of(dimensions)
        labels.setdefault("ModelName", self.model_name)
        labels.setdefault("Level", "Model")
        ids = current_request_ids.get().split(",")
        request_id = ids[int(idx)] if idx is not None and 0 <= int(idx) < len(ids) else ""
        self._add(name, checked_kind(name, metric_type), unit, value, labels, request_id)

    def _add(
        self, name: str, kind: str, unit: str, value: float, labels: Mapping[str, str], request_id: str = ""
    ) -> None:
        if name not in self.cache[kind]:
            self.add_metric_to_cache(name, unit, list(labels), kind)
        self.add_sample(name, kind, unit, value, labels, request_id)

    def add_metric_to_cache(
        self, metric_name: str, unit: str, dimension_names: Sequence[str] = (), metric_type: str = COUNTER
    ) -> CachedMetric:
        """TorchServe's call. An existing metric of this name and type is replaced if it differs."""
        kind = checked_kind(metric_name, metric_type)
        known = self.cache[kind].get(metric_name)
        if known and (known.unit, known.dimension_names) == (unit, list(dimension_names)):
            return known
        if known:
            log.warning("%s %s is replaced: it had the dimensions %s", kind, metric_name, known.dimension_names)
        made = self.cache[kind][metric_name] = CachedMetric(self, metric_name, unit, dimension_names, kind)
        return made

    def get_metric(self, metric_name: str, metric_type: str = COUNTER) -> CachedMetric:
        """A metric that `add_metric_to_cache` or an `add_*` method has made. Raises MetricNotFound, which is a
        KeyError."""
        kind = checked_kind(metric_name, metric_type)
        if metric_name not in self.cache[kind]:
            raise MetricNotFound(f"the {kind} {metric_name!r} does not exist: call add_metric_to_cache first")
        return self.cache[kind][metric_name]
