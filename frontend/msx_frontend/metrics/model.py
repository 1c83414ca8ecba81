"""What is counted of one model version."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING

from msx_backend.protocol import MetricSample
from msx_frontend.job import DESCRIBE, Job
from msx_frontend.llm.metrics import TextMetrics
from msx_frontend.metrics.family import Adds
from msx_frontend.metrics.numbers import Counter
from msx_frontend.statistics import InferenceStatistics

if TYPE_CHECKING:
    from msx_frontend.metrics.server import ServerMetrics


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
        self._queue_time, self._worker_thread_time = server.queue_time, server.worker_thread_time
        self._codes: dict[int, Counter] = {}
        self._torchserve: dict[str | None, tuple[Adds, Adds, Adds]] = {}
        self._text: TextMetrics | None = None
        self.statistics = InferenceStatistics()
        self._with_worker = 0.0
        """Seconds, of the last job, since it left the queue."""

    @property
    def text(self) -> TextMetrics:
        """Of a language model only: what never generates has no such series."""
        if self._text is None:
            self._text = TextMetrics(self._server.text, *self._labels)
        return self._text

    def job_ended(self, job: Job) -> None:
        now, status, enqueued, started = monotonic(), job.status, job.enqueued, job.started
        queued, whole = (started or now) - enqueued, now - enqueued
        (self._codes.get(status) or self._code(status)).value += 1.0
        if job.kind != DESCRIBE:
            if status < 400:
                self.statistics.succeeded(queued, whole)
            else:
                self.statistics.fail.add(whole)
        self._queue.observe(queued)
        self._request.observe(whole)
        if job.first_chunk:
            self._first_chunk.observe(job.first_chunk - enqueued)
        requests, latency, queue = self._torchserve.get(job.version) or self._torchserve_counters(job.version)
        requests.add(1.0)
        latency.add(whole * 1e6)
        queue.add(queued * 1e6)
        self._queue_time.add(queued * 1e3)
        if started:
            self._with_worker = now - started

    def answered(self, status: int) -> None:
        (self._codes.get(status) or self._code(status)).value += 1.0

    def batch(self, size: int, seconds: float) -> None:
        """The worker's time for it; `job_ended` has just been called for its last job."""
        self._batch_size.observe(size)
        self.statistics.batch(size, seconds)
        self._batch_seconds.observe(seconds)
        between = self._with_worker - seconds
        self._worker_thread_time.add(between * 1e3 if between > 0 else 0.0)

    def handler_samples(self, samples: list[MetricSample]) -> None:
        self._server.handlers.add(samples, self._labels[0])

    def worker_loaded(self, number: int, seconds: float) -> None:
        name, version = self._labels
        worker = self._server.ts_series("WorkerLoadTime", WorkerName=f"W-{number}-{name}_{version}")
        worker.add(seconds * 1e3)

    def _code(self, status: int) -> Counter:
        counter = self._codes[status] = self._server.requests.labels(*self._labels, str(status))
        return counter

    def _torchserve_counters(self, version: str | None) -> tuple[Adds, Adds, Adds]:
        """The version as the URL gave it: TorchServe's dashboards ask for "default"."""
        names = ("ts_inference_requests_total", "ts_inference_latency_microseconds", "ts_queue_latency_microseconds")
        known = {"model_name": self._labels[0], "model_version": version or "default"}
        requests, latency, queue = (self._server.ts_series(name, **known) for name in names)
        counters = self._torchserve[version] = requests, latency, queue
        return counters
