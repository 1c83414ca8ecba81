"""Prometheus metrics of the server. docs/metrics.md describes each; a test holds it to that."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Iterable
from typing import Protocol

from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from msx_backend.protocol import MetricSample
from msx_frontend.handler_metrics import HandlerMetrics
from msx_frontend.job import Job
from msx_frontend.llm.metrics import TextFamilies, TextMetrics
from msx_frontend.states import ModelState
from msx_frontend.statistics import InferenceStatistics
from msx_frontend.verbatim_counter import VerbatimCounter, exposition

SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
MODEL = ("model", "version")


class Observed(Protocol):
    """What is read of a model version at each scrape."""

    @property
    def labels(self) -> tuple[str, str]: ...

    @property
    def state(self) -> ModelState: ...

    def gauges(self) -> dict[str, float]:
        """Gauge name to value."""

    def worker_memory(self) -> list[tuple[str, str, int]]:
        """Worker, rank, resident bytes."""


class ServerMetrics:
    """One registry per server; families are made once, children per model version."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry(auto_describe=True)  # else the process is never among some names
        ProcessCollector(registry=registry)
        self.requests = Counter(
            "msx_requests", "Requests answered, by HTTP status", (*MODEL, "code"), registry=registry
        )
        self.queue_seconds = _seconds("msx_queue_seconds", "Time a request waited for a worker", registry)
        self.first_chunk_seconds = _seconds("msx_first_chunk_seconds", "Arrival to first chunk of a reply", registry)
        self.request_seconds = _seconds("msx_request_seconds", "Arrival to end of a reply", registry)
        self.batch_seconds = _seconds("msx_batch_seconds", "Time a worker took for a batch", registry)
        self.batch_size = Histogram("msx_batch_size", "Requests per batch", MODEL, buckets=SIZES, registry=registry)
        self.restarts = Counter("msx_worker_restarts", "Worker groups started again", MODEL, registry=registry)
        self.ts_requests = _torchserve("ts_inference_requests_total", "Inference requests", registry)
        self.ts_latency = _torchserve("ts_inference_latency_microseconds", "Inference latency", registry)
        self.ts_queue = _torchserve("ts_queue_latency_microseconds", "Queue latency", registry)
        self.text = TextFamilies(registry)
        self.handlers = HandlerMetrics(registry)
        self.versions: list[Observed] = []
        self._observer = _Observer(self.versions)
        registry.register(self._observer)
        self.hostname = socket.gethostname()

    async def expose(self, names: frozenset[str] = frozenset()) -> bytes:
        """The text format of Prometheus; with `names` only those metrics."""
        wanted = self.registry.restricted_registry(list(names)) if names else self.registry
        self._observer.look()
        return await asyncio.to_thread(exposition, wanted)  # takes tens of ms with many models


class ModelMetrics:
    """The children of one model version, looked up once: the hot path only adds."""

    def __init__(self, server: ServerMetrics, name: str, version: str) -> None:
        self._server, self._labels = server, (name, version)
        self._queue = server.queue_seconds.labels(name, version)
        self._first_chunk = server.first_chunk_seconds.labels(name, version)
        self._request = server.request_seconds.labels(name, version)
        self._batch_seconds = server.batch_seconds.labels(name, version)
        self._batch_size = server.batch_size.labels(name, version)
        self.restarts = server.restarts.labels(name, version)
        self._codes: dict[int, Counter] = {}
        self._torchserve: dict[str, tuple[Counter, Counter, Counter]] = {}
        self._text: TextMetrics | None = None
        self.statistics = InferenceStatistics()

    @property
    def text(self) -> TextMetrics:
        """Of a language model; others have none of these series."""
        if self._text is None:
            self._text = TextMetrics(self._server.text, *self._labels)
        return self._text

    def job_ended(self, job: Job) -> None:
        now = time.monotonic()
        self.answered(job.status)
        self.statistics.job_ended(job, now)
        taken = job.started or now
        self._queue.observe(taken - job.enqueued)
        self._request.observe(now - job.enqueued)
        if job.first_chunk:
            self._first_chunk.observe(job.first_chunk - job.enqueued)
        requests, latency, queue = self._torchserve_counters(job.version or "default")
        requests.inc()
        latency.inc((now - job.enqueued) * 1e6)
        queue.inc((taken - job.enqueued) * 1e6)

    def answered(self, status: int) -> None:
        counter = self._codes.get(status)
        if counter is None:
            counter = self._codes[status] = self._server.requests.labels(*self._labels, str(status))
        counter.inc()

    def batch(self, size: int, seconds: float) -> None:
        self._batch_size.observe(size)
        self.statistics.batch(size, seconds)
        self._batch_seconds.observe(seconds)

    def handler_samples(self, samples: list[MetricSample]) -> None:
        self._server.handlers.add(samples, self._labels[0])

    def _torchserve_counters(self, version: str) -> tuple[Counter, Counter, Counter]:
        """The version as the URL gave it: TorchServe's dashboards ask for "default"."""
        counters = self._torchserve.get(version)
        if counters is None:
            server, labels = self._server, (self._labels[0], version, self._server.hostname)
            counters = (
                server.ts_requests.labels(*labels),
                server.ts_latency.labels(*labels),
                server.ts_queue.labels(*labels),
            )
            self._torchserve[version] = counters
        return counters


class _Observer(Collector):
    """Gauges that are true at the moment of the scrape."""

    HELP = {
        "msx_queue_depth": "Requests waiting for a worker",
        "msx_queue_oldest_seconds": "Age of the oldest waiting request",
        "msx_requests_in_flight": "Requests being worked on",
        "msx_workers_wanted": "Workers asked for",
        "msx_workers_ready": "Workers that answer",
    }

    def __init__(self, versions: list[Observed]) -> None:
        self._versions = versions
        self._seen: list[GaugeMetricFamily] = []
        self.look()

    def look(self) -> None:
        """On the loop's thread, which owns what is looked at."""
        families = {name: GaugeMetricFamily(name, text, labels=MODEL) for name, text in self.HELP.items()}
        memory = GaugeMetricFamily(
            "msx_worker_memory_bytes", "Resident memory of a worker process", labels=(*MODEL, "worker", "rank")
        )
        states = GaugeMetricFamily(
            "msx_model_state", "1 for the state that a model version is in", labels=(*MODEL, "state")
        )
        for version in self._versions:
            for state in ModelState:
                states.add_metric((*version.labels, state.value), float(state is version.state))
            for name, value in version.gauges().items():
                families[name].add_metric(version.labels, value)
            for worker, rank, size in version.worker_memory():
                memory.add_metric((*version.labels, worker, rank), size)
        self._seen = [*families.values(), states, memory]

    def describe(self) -> Iterable[GaugeMetricFamily]:
        return self._seen

    def collect(self) -> Iterable[GaugeMetricFamily]:
        return self._seen


def _seconds(name: str, text: str, registry: CollectorRegistry) -> Histogram:
    return Histogram(name, text, MODEL, buckets=SECONDS, registry=registry)


def _torchserve(name: str, text: str, registry: CollectorRegistry) -> VerbatimCounter:
    return VerbatimCounter(name, text, ("model_name", "model_version", "hostname"), registry)
