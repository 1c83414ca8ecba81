"""Which requests are kept, and where their milliseconds went."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from msx_core.service_errors import Overloaded, WorkerDied
from msx_frontend.job import Job
from msx_frontend.metrics import ModelMetrics, ServerMetrics
from msx_frontend.metrics.traces import KEPT, LONGEST, Trace
from tests.frontend.jobs import RecordingSink, make_job
from tests.phrases import worker_died


class Connection(RecordingSink):
    """A sink that knows when the head of its request came."""

    started = 99.0


class Around(RecordingSink):
    def __init__(self, sink: RecordingSink) -> None:
        super().__init__()
        self.sink = sink


class Worker:
    def cancel(self, job: Job) -> None: ...

    def batch_of(self, job: Job) -> tuple[float, int]:
        return 103.0, 4


@pytest.fixture
def metrics(monkeypatch: pytest.MonkeyPatch) -> ModelMetrics:
    monkeypatch.setattr("msx_frontend.metrics.model.monotonic", lambda: 110.0)
    return ModelMetrics(ServerMetrics(), "m", "1.0")


def ended(metrics: ModelMetrics, name: str = "j", **given: Any) -> Job:
    job = make_job(name, sink=given.pop("sink", RecordingSink()))
    job.listener, job.group = metrics, Worker()
    job.enqueued, job.started, job.first_chunk = 100.0, 102.0, 106.0
    for key, value in given.items():
        setattr(job, key, value)
    job.finish(200)
    return job


def slow(metrics: ModelMetrics) -> list[Trace]:
    return metrics.traces.kept[0]


def failed(metrics: ModelMetrics) -> list[Trace]:
    return metrics.traces.kept[1]


def phases(trace: Trace) -> tuple[float | None, ...]:
    return trace.parse, trace.queue, trace.wait, trace.worker, trace.reply


def test_each_millisecond_of_a_slow_request(metrics: ModelMetrics) -> None:
    ended(metrics, sink=Around(Around(Connection())))
    (trace,) = slow(metrics)
    assert phases(trace) == (1000, 2000, 1000, 3000, 4000)
    assert (trace.total, sum(filter(None, phases(trace)))) == (11000, 11000)
    assert (trace.id, trace.model, trace.version, trace.status, trace.batch, trace.error) == (
        "j", "m", "1.0", 200, 4, "",
    )  # fmt: skip


def test_a_request_whose_arrival_is_not_known(metrics: ModelMetrics) -> None:
    ended(metrics)
    assert phases(slow(metrics)[0]) == (None, 2000, 1000, 3000, 4000)


def test_only_what_is_slower_than_what_was_kept(metrics: ModelMetrics) -> None:
    for enqueued in (100.0, 100.0, 101.0, 99.0):
        ended(metrics, enqueued=enqueued)
    assert [trace.queue for trace in slow(metrics)] == [2000, 3000]
    metrics.traces.judged(5.0)
    ended(metrics, enqueued=104.0)
    ended(metrics, enqueued=106.0)
    assert len(slow(metrics)) == 3


def test_failed_requests_are_all_kept_up_to_a_bound(metrics: ModelMetrics) -> None:
    metrics.traces.judged(1000.0)
    for number in range(KEPT + 5):
        job = make_job(f"j{number}")
        job.listener, job.enqueued = metrics, 108.0
        job.fail(WorkerDied("x" * 1000))
    traces = failed(metrics)
    assert [trace.id for trace in traces] == [f"j{number}" for number in range(5, KEPT + 5)]
    assert traces[0].error == worker_died("x" * 1000)[:LONGEST]
    assert phases(traces[0]) == (None, 2000, 0, 0, 0)
    assert slow(metrics) == []
    assert metrics.traces.last == traces[-1].number


def test_a_request_that_was_refused(metrics: ModelMetrics) -> None:
    metrics.refused(make_job(), Overloaded("The queue is full."))
    assert [(trace.status, trace.error) for trace in failed(metrics)] == [(503, "The queue is full.")]


def test_a_job_keeps_no_error(metrics: ModelMetrics) -> None:
    job = make_job()
    job.listener = metrics
    job.fail(WorkerDied("gone"))
    assert not hasattr(job, "failure")


def test_totals_are_of_all_that_was_settled(metrics: ModelMetrics) -> None:
    ended(metrics)
    job = make_job()
    job.listener, job.enqueued = metrics, 108.0
    job.fail(WorkerDied("gone"))
    metrics.batch(2, 0.5)
    asyncio.run(metrics._server.expose())
    totals = metrics.totals()
    assert (totals.requests, totals.refused, totals.failed, sum(totals.times)) == (2, 0, 1, 2)
    assert (totals.batches, totals.batched, totals.tokens) == (1, 2, 0)
