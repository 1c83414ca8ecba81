"""The metrics of one model version."""

import logging
from operator import sub
from time import monotonic, time
from typing import Protocol

from msx_core.non_finite import COUNTER, HELP, NonFinite
from msx_core.priorities import name_of
from msx_core.service_errors import ServiceError
from msx_frontend.job import DESCRIBE, Job
from msx_frontend.metrics.engines import EngineFigures
from msx_frontend.metrics.family import SampleTarget
from msx_frontend.metrics.gathered import Batch, Ended
from msx_frontend.metrics.generation import TextMetrics
from msx_frontend.metrics.history import Totals
from msx_frontend.metrics.inference_statistics import InferenceStatistics
from msx_frontend.metrics.numbers import Counter
from msx_frontend.metrics.server import ServerMetrics
from msx_frontend.metrics.source import worker_name
from msx_frontend.metrics.traces import FAILED, Traces
from msx_protocol import MetricInfo, MetricSample

log = logging.getLogger("msx.model")

_NON_FINITE = MetricInfo(COUNTER, "counter", HELP)

BROKEN = 500
"""The lowest status of an error that is not the client's."""


class EndedRequest(Protocol):
    """Instants are those of `time.monotonic()`, 0 for what did not happen."""

    version: str | None
    status: int
    kind: str
    enqueued: float
    started: float
    first_chunk: float


class ModelMetrics:
    """The metrics of one model version, looked up once, so that the hot path only adds."""

    def __init__(self, server: ServerMetrics, name: str, version: str) -> None:
        self._server = server
        self._labels = self.labels = (name, version)
        self._source = server.source(name, version)
        self._queue = server.queue_seconds.labels(name, version)
        self._first_chunk = server.first_chunk_seconds.labels(name, version)
        self._request = server.request_seconds.labels(name, version)
        self._batch_seconds = server.batch_seconds.labels(name, version)
        self._batch_size = server.batch_size.labels(name, version)
        self.restarts = server.restarts.labels(name, version)
        self._gathered = gathered = server.gathered
        self._jobs = gathered.jobs
        self._batches = gathered.batches
        self._most = gathered.most
        self._codes: dict[int, Counter] = {}
        self._torchserve: dict[str | None, tuple[SampleTarget, SampleTarget, SampleTarget]] = {}
        self._text: TextMetrics | None = None
        self.non_finite = NonFinite(self._count_non_finite, log, {"model": name, "version": version})
        """Replies whose JSON is made here, not by a worker."""
        self.engines = EngineFigures()
        self._statistics = server.statistics.begin(name, version)
        self.traces = Traces(name, version)
        self.spans = server.spans
        """None where requests are not traced for OpenTelemetry."""
        self._with_worker = 0.0
        """Seconds since the last job left the queue."""

    @property
    def text(self) -> TextMetrics:
        """Metrics of language models, made at the first use, so that other models do not have these series."""
        if self._text is None:
            self._text = TextMetrics(self._server.text, *self._labels)
        return self._text

    @property
    def statistics(self) -> InferenceStatistics:
        self._gathered.settle()
        return self._statistics

    def totals(self) -> Totals:
        """Totals until now. The caller has settled what is gathered."""
        codes, text = self._codes.items(), self._text
        return Totals(
            requests=sum(counter.value for _, counter in codes),
            refused=sum(counter.value for code, counter in codes if FAILED <= code < BROKEN),
            failed=sum(counter.value for code, counter in codes if code >= BROKEN),
            times=tuple(self._request.counts),
            batches=sum(self._batch_size.counts),
            batched=self._batch_size.sum,
            tokens=text.completion.value if text is not None else 0.0,
        )

    def jobs_ended(self, jobs: list[Job]) -> None:
        now, started, gathered = monotonic(), jobs[-1].started, self._jobs
        gathered += [
            ((self, job.version, job.status, job.kind), job.enqueued, job.started, job.first_chunk, now) for job in jobs
        ]
        if started:
            self._with_worker = now - started
        if jobs[0].status >= FAILED or now - jobs[0].enqueued > self.traces.bound:
            self.traces.ended(jobs, now)
        if self.spans is not None:
            self.spans.ended(jobs, now, self)
        if len(gathered) >= self._most:
            self._gathered.settle()

    def exemplify(self, seconds: float, trace: str) -> None:
        """A sampled request took so long."""
        self._request.exemplify(seconds, trace, time())

    def instance_ended(self, started: float) -> None:
        self._with_worker = monotonic() - started

    def request_ended(self, request: EndedRequest) -> None:
        """A request whose instances were jobs of their own, and are not counted by themselves."""
        self._jobs.append(
            (
                (self, request.version, request.status, request.kind),
                request.enqueued,
                request.started,
                request.first_chunk,
                now := monotonic(),
            )
        )
        if self.spans is not None:
            self.spans.ended([request], now, self)

    def prioritised(self, priority: int) -> None:
        self._server.prioritised.labels(*self._labels, name_of(priority)).inc()

    def answered(self, status: int) -> None:
        (self._codes.get(status) or self._code(status)).value += 1.0

    def refused(self, job: Job, error: ServiceError) -> None:
        """It was not queued."""
        self.answered(status := job.status_of(error))
        self.traces.refused(job, status, error)
        if self.spans is not None:
            job.status = status
            self.spans.ended([job], monotonic(), self)

    def batch(self, size: int, seconds: float, count: int = 1) -> None:
        """Count `count` batches, whose jobs have ended before; `seconds` is the worker's time for each."""
        batches, between = self._batches, self._with_worker - seconds
        batches += [((self, size), seconds, between if between > 0 else 0.0)] * count
        if len(batches) >= self._most:
            self._gathered.settle()

    def add_jobs(self, version: str | None, status: int, kind: str, jobs: list[Ended]) -> None:
        """Count jobs of one requested version, one status and one kind."""
        _, enqueued, started, first, ended = zip(*jobs, strict=True)
        taken = started if all(started) else [start or end for start, end in zip(started, ended, strict=True)]
        queued, whole = list(map(sub, taken, enqueued)), list(map(sub, ended, enqueued))
        (self._codes.get(status) or self._code(status)).inc(len(jobs))
        if kind != DESCRIBE:
            self._statistics.add(status, queued, whole, ended[-1])
        self._queue.observe_all(queued)
        self._request.observe_all(whole)
        self._first_chunk.observe_all([at - begun for at, begun in zip(first, enqueued, strict=True) if at])
        requests, latency, waited = self._torchserve.get(version) or self._torchserve_counters(version)
        requests.add_all([1.0] * len(jobs))
        latency.add_all(whole, 1e6)
        waited.add_all(queued, 1e6)
        self._server.queue_time.add_all(queued, 1e3)

    def add_batches(self, size: int, batches: list[Batch]) -> None:
        """Count batches of one size."""
        _, seconds, between = zip(*batches, strict=True)
        self._statistics.add_batches(size, len(batches), sum(seconds))
        self._batch_size.observe_all([size] * len(batches))
        self._batch_seconds.observe_all(seconds)
        self._server.worker_thread_time.add_all(between, 1e3)

    def handler_forms(self, forms: list[MetricInfo]) -> None:
        self._source.learn(forms)

    def handler_samples(self, samples: list[MetricSample], worker: int | None) -> None:
        """`worker` is None for samples that arrive after its end."""
        if worker is not None:
            self.engines.add(worker, samples)
        self._server.handlers.add(samples, self._source, worker)

    def _count_non_finite(self) -> None:
        """As a worker's own replies are counted."""
        self._source.learn([_NON_FINITE])
        self._server.handlers.add([MetricSample(COUNTER, _NON_FINITE.kind, "Count", 1.0, [])], self._source, None)

    def autoscaled(self, direction: str) -> None:
        """It was decided to have more workers ("up") or fewer ("down")."""
        self._server.autoscaled.labels(*self._labels, direction).inc()

    def worker_loaded(self, number: int, seconds: float) -> None:
        self._server.ts_series("WorkerLoadTime", WorkerName=worker_name(number, *self._labels)).add(seconds * 1e3)

    def worker_ended(self, number: int) -> None:
        """Remove the worker's own series."""
        self.engines.forget(number)
        self._server.forget_worker(worker_name(number, *self._labels))
        self._server.handlers.forget((self._source, number))

    def close(self) -> None:
        """The version was removed: remove the series of its handlers, and its statistics. The counters of the server
        stay."""
        self._source.closed = True
        self._server.handlers.forget(self._source)
        self._server.statistics.end(*self._labels, self._statistics)

    def _code(self, status: int) -> Counter:
        counter = self._codes[status] = self._server.requests.labels(*self._labels, str(status))
        return counter

    def _torchserve_counters(self, version: str | None) -> tuple[SampleTarget, SampleTarget, SampleTarget]:
        """Counters by the version of the URL; "default" without one, as in TorchServe."""
        names = ("ts_inference_requests_total", "ts_inference_latency_microseconds", "ts_queue_latency_microseconds")
        known = {"model_name": self._labels[0], "model_version": version or "default"}
        requests, latency, queue = (self._server.ts_series(name, **known) for name in names)
        counters = self._torchserve[version] = requests, latency, queue
        return counters
