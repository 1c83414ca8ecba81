"""Prometheus metrics of the server. docs/metrics.md describes each of them, which a test checks."""

import asyncio
import logging
import socket
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.registry import Collector

from msx_frontend.metrics.batches import BatchMetrics
from msx_frontend.metrics.declared import HOSTNAME, DeclaredMetric, MetricsSpec, load_spec
from msx_frontend.metrics.exposition import exposition
from msx_frontend.metrics.family import DiscardedSamples, MetricFamily, SampleTarget
from msx_frontend.metrics.gathered import MOST, PendingCounts
from msx_frontend.metrics.generation import TextFamilies
from msx_frontend.metrics.handed_counts import CountedRegistry, HandedSeries, OfHandler, received
from msx_frontend.metrics.handlers import WORKER_LABEL, HandlerMetrics
from msx_frontend.metrics.inference_statistics import VersionStatistics
from msx_frontend.metrics.jobs import JobMetrics
from msx_frontend.metrics.log import MetricLogs
from msx_frontend.metrics.numbers import CounterFamily, HistogramFamily
from msx_frontend.metrics.observer import MODEL, ModelGauges, ObservedModel, ServerFigures
from msx_frontend.metrics.source import SampleSource
from msx_protocol import MetricSample

log = logging.getLogger("msx.metrics")

SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)

KEY = ("key", "protocol", "code")

Exposition = Callable[[Collector], bytes]

LEGACY = frozenset(
    {"ts_inference_requests_total", "ts_inference_latency_microseconds", "ts_queue_latency_microseconds"}
)
"""TorchServe's metrics that `metrics_mode=legacy` exposes; the others are logged."""


class TracesJobs(Protocol):
    """Maker of the spans of jobs, for OpenTelemetry."""

    def begin(self, job: Any) -> None: ...

    def ended(self, jobs: list[Any], now: float, of: Any) -> None: ...


class ServerMetrics:
    """One registry per server; families are made once, children per model version.

    `mode` is `metrics_mode`: with "log" nothing is exposed and TorchServe's metrics go to `logs`, with "legacy" all
    but three do, with "prometheus" or None all are exposed. New metrics of handlers count if `auto_detect`, or None
    where `mode` is.
    """

    def __init__(
        self,
        mode: str | None = None,
        spec: MetricsSpec | None = None,
        *,
        auto_detect: bool | None = None,
        logs: MetricLogs | None = None,
        spans: TracesJobs | None = None,
    ) -> None:
        self.registry = registry = CountedRegistry()
        self._mode, self._logs, spec = mode, logs, spec or load_spec()
        self.hostname = socket.gethostname()
        self.spans = spans
        ProcessCollector(registry=registry)
        self._make_own(registry)
        self.text = TextFamilies(registry)
        self._ts = {one.name: self._family(kind, one) for kind, one in spec.ts}
        self._counted = dict(registry.counted)
        """Families of the server that count; those of handlers are made later."""
        self._sources: dict[tuple[str, str], SampleSource] = {}
        self._handed: defaultdict[tuple[str, str], list[HandedSeries]] = defaultdict(list)
        """Series of another server's handlers, whose models are not registered yet."""
        self._anew: set[str] = set()
        """Metrics with which this server does not go on."""
        logged = mode in ("log", "legacy")
        self.handlers = HandlerMetrics(
            spec.model,
            self.hostname,
            None if logged else registry,
            logs.model if logs and logged else None,
            auto_detect=mode is None if auto_detect is None else auto_detect,
        )
        self.gathered = PendingCounts(1 if logged else MOST)  # lines have the time of their update
        self.queue_time = self.ts_series("QueueTime")
        self.worker_thread_time = self.ts_series("WorkerThreadTime")
        self._replies = {first: self.ts_series(f"Requests{first}XX") for first in (2, 4, 5)}
        self.replies_by_status: dict[int, SampleTarget] = {}
        """The same for statuses that were seen; see `replied`."""
        self.versions: list[ObservedModel] = []
        self._gauges = ModelGauges(self.versions)
        registry.register(self._gauges)
        self.jobs, self.batches = JobMetrics(), BatchMetrics()
        registry.register(self.jobs)
        registry.register(self.batches)
        self.statistics = VersionStatistics()
        self._counted |= {one.name: one for one in (*self.jobs.carried, *self.batches.carried, *self._gauges.carried)}
        self._counted[self.statistics.name] = self.statistics

    def _make_own(self, registry: CollectorRegistry) -> None:
        self.requests = CounterFamily("msx_requests", "Requests answered, by HTTP status", (*MODEL, "code"), registry)
        self.queue_seconds = _seconds("msx_queue_seconds", "Time a request waited for a worker", registry)
        self.first_chunk_seconds = _seconds("msx_first_chunk_seconds", "Arrival to first chunk of a reply", registry)
        self.request_seconds = _seconds("msx_request_seconds", "Arrival to end of a reply", registry)
        self.batch_seconds = _seconds("msx_batch_seconds", "Time a worker took for a batch", registry)
        self.key_requests = CounterFamily(
            "msx_key_requests", "Requests by the name of their key, and by HTTP's or gRPC's status", KEY, registry
        )
        self.app_requests = CounterFamily(
            "msx_app_requests", "Requests that an app answered, by HTTP's status", ("app", "code"), registry
        )
        self.app_seconds = HistogramFamily(
            "msx_app_seconds", "Arrival to end of an app's reply", ("app",), SECONDS, registry
        )
        self.batch_size = HistogramFamily("msx_batch_size", "Requests per batch", MODEL, SIZES, registry)
        self.autoscaled = CounterFamily(
            "msx_autoscaling_decisions", "Decisions to have more or fewer workers", (*MODEL, "direction"), registry
        )
        self.prioritised = CounterFamily(
            "msx_priority_requests", "Requests that asked for a class", (*MODEL, "priority"), registry
        )
        self.diverted = CounterFamily(
            "msx_traffic_diverted",
            "Requests that others got because it could not answer",
            MODEL,
            registry,
        )
        self.restarts = CounterFamily("msx_worker_restarts", "Worker groups started again", MODEL, registry)

    async def expose(self, names: frozenset[str] = frozenset(), form: Exposition = exposition) -> bytes:
        """The metrics in Prometheus' text format, or in another `form`; with `names` these metrics only."""
        if self._mode == "log":
            return form(CollectorRegistry())
        if self._mode == "legacy":
            names = names & LEGACY if names else LEGACY
        self.gathered.settle()
        wanted = self.registry.restricted_registry(list(names)) if names else self.registry
        self._gauges.look()
        self.jobs.look()
        self.batches.look()
        return await asyncio.to_thread(form, wanted)  # takes tens of ms with many models

    def show(self, figures: ServerFigures) -> None:
        """Show these figures of the server in the gauges from now on."""
        self._gauges.figures = figures

    def replied(self, status: int) -> None:
        """Count an HTTP request that was answered, on any listener."""
        series = self.replies_by_status[status] = self._replies[2 if status < 400 else 4 if status < 500 else 5]
        series.add(1.0)

    def answered(self, app: str, status: int, seconds: float) -> None:
        """Count a request that an app of a plugin answered."""
        self.app_requests.labels(app, str(status)).inc()
        self.app_seconds.labels(app).observe(seconds)

    def ts_series(self, name: str, /, **known: str) -> SampleTarget:
        """A series of one of TorchServe's own metrics: its dimensions as they were declared."""
        return self._series(self._ts.get(name), known)

    def system(self, samples: list[MetricSample]) -> None:
        """Add figures of the machine; figures that are not declared are dropped."""
        for sample in samples:
            self.ts_series(sample.name, **dict(sample.labels)).add(sample.value)

    def forget_worker(self, name: str) -> None:
        """A worker has ended: remove its series. `name` is TorchServe's name of the worker."""
        for family in self._ts.values():
            if WORKER_LABEL in family.labels:
                family.remove(self._values(family, {WORKER_LABEL: name}))

    # -- another server goes on with it --

    def source(self, model: str, version: str) -> SampleSource:
        """The version as a source of samples; it goes on with what its handlers have counted in another server."""
        source = self._sources[model, version] = SampleSource(model, version)
        for series in self._handed.pop((model, version), ()):
            self._go_on_with(series)
        return source

    def counted(self) -> Iterator[HandedSeries]:
        """See `CountsSource`."""
        self.gathered.settle()
        for name, family in self._counted.items():
            for labels, counts in family.counts():
                yield HandedSeries(name, list(labels), counts, family.shape)
        yield from self.handlers.counted()

    def go_on_with(self, told: list[dict[str, Any]]) -> None:
        """Go on with what another server has counted. Raises ValueError for what is no message of it."""
        for series in received(told):
            self._go_on_with(series)

    def _go_on_with(self, series: HandedSeries) -> None:
        try:
            if series.of is not None:
                self._go_on_with_handlers(series, series.of)
            elif (family := self._counted.get(series.name)) is not None:
                if family.shape != series.shape:
                    raise ValueError("its labels or buckets are others now")
                family.add_counts(tuple(series.labels), series.counts)
        except ValueError as error:
            if series.name not in self._anew:
                self._anew.add(series.name)
                log.info("the metric %s begins anew: %s", series.name, error)

    def _go_on_with_handlers(self, series: HandedSeries, of: OfHandler) -> None:
        """Raises ValueError."""
        if (source := self._sources.get((of.model, of.version))) is None:
            self._handed[of.model, of.version].append(series)
        elif not source.closed:
            self.handlers.go_on(series, of, source)

    def _series(self, family: MetricFamily | None, known: dict[str, Any]) -> SampleTarget:
        if family is None:
            return DiscardedSamples()
        try:
            return family.series(self._values(family, known))
        except ValueError:  # too many
            return DiscardedSamples()

    def _values(self, family: MetricFamily, known: dict[str, Any]) -> tuple[str, ...]:
        known = {"Level": "Host", HOSTNAME: self.hostname, HOSTNAME.lower(): self.hostname, **known}
        return tuple(known.get(label, "") for label in family.labels)

    def _family(self, kind: str, one: DeclaredMetric) -> MetricFamily:
        logged = self._mode == "log" or (self._mode == "legacy" and one.name not in LEGACY)
        log = self._logs.ts if self._logs and logged else None
        registry, buckets = None if logged else self.registry, one.bounds
        return MetricFamily(one.name, kind, one.unit, one.dimensions, registry, log, help=one.help, buckets=buckets)


def _seconds(name: str, text: str, registry: CollectorRegistry) -> HistogramFamily:
    return HistogramFamily(name, text, MODEL, SECONDS, registry)
