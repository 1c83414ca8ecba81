"""Metrics that handlers report: declared ones and new ones."""

import logging
import re
from collections.abc import Iterator
from functools import lru_cache

from prometheus_client import CollectorRegistry

from msx_frontend.metrics.declared import HOSTNAME, DeclaredMetric, Kind
from msx_frontend.metrics.family import HistogramSeries, LogsMetrics, MetricFamily
from msx_frontend.metrics.handed_counts import HandedSeries, OfHandler
from msx_frontend.metrics.owners import SeriesOwners
from msx_frontend.metrics.source import Owner, SampleSource, worker_name
from msx_protocol import MetricInfo, MetricSample

log = logging.getLogger("msx.metrics")

MOST_METRICS = 200
"""New metrics at most: a handler that makes up names must not fill the memory."""

MODEL_LABEL = "ModelName"
"""TorchServe's label, which its `add_*` methods set. In MSX every new metric has it, so that models are not mixed."""

VERSION_LABEL = "ModelVersion"
WORKER_LABEL = "WorkerName"
"""Labels of metrics in the SDK's form; the second is for gauges only, which cannot be summed.

A declared metric has them if they are among its dimensions.
"""

BOUND = "le"

OWN = ("msx_", "vllm:")
"""Metrics of the engines need no declaration."""


class HandlerMetrics:
    """A declared metric has its declared kind and dimensions, and the host. With `auto_detect`, the first sample of
    a new metric decides them, until its last series is removed. A sample that differs is dropped and logged once."""

    def __init__(
        self,
        declared: tuple[tuple[Kind, DeclaredMetric], ...],
        hostname: str,
        registry: CollectorRegistry | None,
        log: LogsMetrics | None = None,
        *,
        auto_detect: bool = True,
    ) -> None:
        self._hostname = hostname
        self._registry = registry
        self._log = log
        self._auto_detect = auto_detect
        self._declared = {one.name: self._make_declared(kind, one) for kind, one in declared}
        self._new: dict[str, MetricFamily] = {}
        """The families by Prometheus' names."""
        self._owners = SeriesOwners()
        self._complained: set[str] = set()

    def add(self, samples: list[MetricSample], source: SampleSource, worker: int | None) -> None:
        """`worker` is None for a worker that has ended: samples of that worker alone are dropped."""
        if source.closed:
            return
        known = {MODEL_LABEL: source.model, VERSION_LABEL: source.version, HOSTNAME: self._hostname}
        if worker is not None:
            known[WORKER_LABEL] = worker_name(worker, source.model, source.version)
        for sample in samples:
            try:
                self._add(sample, source, worker, known)
            except ValueError as error:
                self._complain(sample.name, str(error))

    def counted(self) -> Iterator[HandedSeries]:
        """All series that count, and what they have counted."""
        for series, source in list(self._owners):
            if counts := series.counts:
                family, bounds = series.family, list(series.bounds)
                of = OfHandler(source.model, source.version, family.kind, family.unit, family.help, list(family.labels))
                yield HandedSeries(family.name, list(series.labels), counts, bounds=bounds, of=of)

    def go_on(self, given: HandedSeries, of: OfHandler, source: SampleSource) -> None:
        """Go on with a series of another server. Raises ValueError where it is another metric here."""
        family = self._new.get(given.name) or self._declared.get(given.name)
        if family is None:
            if len(self._new) >= MOST_METRICS:
                raise ValueError(f"handlers may bring at most {MOST_METRICS} metrics")
            family = self._make(given.name, of.kind, of.unit, tuple(of.labels), of.help, tuple(given.bounds))
            self._new[given.name] = family
        if (family.kind, family.labels) != (of.kind, tuple(of.labels)):
            raise ValueError(f"it is a {family.kind} with the labels {list(family.labels)} now")
        bounds = tuple(given.bounds)
        series = family.series(tuple(given.labels), () if given.name in self._declared else bounds)
        self._owners.add(series, source)
        if series.bounds != bounds:
            raise ValueError("its buckets are others now")
        series.count(given.counts)

    def forget(self, owner: Owner) -> None:
        """Remove the series that no other owner has written to, and new metrics that have no series left."""
        for series in self._owners.forget(owner):
            family = series.family
            family.remove(series.labels)
            if family.empty and self._new.get(family.name) is family:
                del self._new[family.name]
                family.close()

    def _add(self, sample: MetricSample, source: SampleSource, worker: int | None, known: dict[str, str]) -> None:
        given = {_label_name(label): text for label, text in sample.labels}
        family = self._declared.get(sample.name) or self._new_family(sample, tuple(given), source.forms)
        of_worker = WORKER_LABEL in family.labels and WORKER_LABEL not in given
        if of_worker and worker is None:
            return
        known = {**known, **given}
        if given.keys() - family.labels - {MODEL_LABEL, HOSTNAME} or family.labels_not_in(known):
            raise ValueError(f"it has the labels {list(family.labels)}, not {list(given)}")
        form = source.forms.get(sample.name)
        bounds = form.buckets if form else ()
        own = () if sample.name in self._declared else bounds
        series = family.series(tuple(known[label] for label in family.labels), own)
        self._owners.add(series, (source, worker) if of_worker and worker is not None else source)
        if not sample.counts:
            series.add(sample.value, sample.request_id)
        elif isinstance(series, HistogramSeries):
            series.merge(bounds, sample.counts, sample.value)
        else:
            raise ValueError(f"it is a {family.kind}, which takes no counts of buckets")

    def _new_family(
        self, sample: MetricSample, dimensions: tuple[str, ...], forms: dict[str, MetricInfo]
    ) -> MetricFamily:
        name = _prometheus_name(sample.name)
        family = self._new.get(name)
        if family is None:
            if sample.kind == "histogram" and BOUND in dimensions:
                raise ValueError(f"a histogram has the label {BOUND} for its buckets")
            if not (self._auto_detect or sample.name.startswith(OWN)):
                raise ValueError("metrics_config does not declare it, and model_metrics_auto_detect is not true")
            if len(self._new) >= MOST_METRICS:
                raise ValueError(f"handlers may bring at most {MOST_METRICS} metrics")
            form = forms.get(sample.name)
            dimensions = (*_added(sample.kind, form, dimensions), *dimensions)
            family = self._new[name] = self._make(
                name,
                sample.kind,
                sample.unit,
                dimensions,
                form.help if form else "",
                form.buckets if form else (),
            )
        if family.kind != sample.kind:
            raise ValueError(f"it is a {family.kind}, not a {sample.kind}")
        return family

    def _make_declared(self, kind: Kind, one: DeclaredMetric) -> MetricFamily:
        return self._make(one.name, kind, one.unit, one.dimensions, one.help, one.bounds)

    def _make(
        self, name: str, kind: str, unit: str, dimensions: tuple[str, ...], text: str, buckets: tuple[float, ...]
    ) -> MetricFamily:
        labels = (*(label for label in dimensions if label != HOSTNAME), HOSTNAME)
        return MetricFamily(name, kind, unit, labels, self._registry, self._log, help=text, buckets=buckets)

    def _complain(self, name: str, reason: str) -> None:
        if name not in self._complained and len(self._complained) < MOST_METRICS:
            self._complained.add(name)
            log.warning("a sample of the handler metric %r was left out: %s", name, reason)


def _added(kind: str, form: MetricInfo | None, given: tuple[str, ...]) -> tuple[str, ...]:
    """The labels of a new metric in addition to those of its handler."""
    own = () if form is None else (VERSION_LABEL, WORKER_LABEL) if kind == "gauge" else (VERSION_LABEL,)
    return tuple(label for label in (MODEL_LABEL, *own) if label not in given)


@lru_cache(maxsize=4096)
def _label_name(name: str) -> str:
    """The name without what only names of metrics may have, and without Prometheus' own prefix."""
    return re.sub(r"^__+", "_", _prometheus_name(name).replace(":", "_"))


@lru_cache(maxsize=4096)
def _prometheus_name(name: str) -> str:
    clean = re.sub(r"[^a-zA-Z0-9_:]", "_", name)
    return clean if clean[:1].isalpha() or clean[:1] == "_" else f"_{clean}"
