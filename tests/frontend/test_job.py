"""A job ends once, whatever comes when."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable

import pytest

from msx_core.service_errors import DeadlineExceeded, RequestCancelled, ServiceError, WorkerDied
from msx_frontend.job import Job, answer_all
from tests.frontend.jobs import Listener, error_of, make_job, sink_of
from tests.loops import run
from tests.phrases import worker_died


class Holder:
    """Stands for the queue, or for the group, that has the job."""

    def __init__(self) -> None:
        self.told: list[Job] = []

    def discard(self, job: Job) -> None:
        self.told.append(job)

    cancel = discard


ENDS: dict[str, Callable[[Job], None]] = {
    "finish": lambda job: job.finish(200),
    "fail": lambda job: job.fail(WorkerDied("It ended.")),
    "cancel": lambda job: job.cancel(),
}


@pytest.mark.parametrize(("first", "second"), list(itertools.product(ENDS, ENDS)))
def test_the_first_end_counts(first: str, second: str) -> None:
    job, listener = make_job(), Listener()
    job.listener = listener
    ENDS[first](job)
    events, status = list(sink_of(job).events), job.status
    assert job.done
    assert len(events) == 1
    ENDS[second](job)
    assert sink_of(job).events == events
    assert job.status == status
    assert listener.ended == [job]


def test_statuses() -> None:
    job = make_job()
    job.finish(201)
    assert (job.status, sink_of(job).events) == (201, ["end"])
    job = make_job()
    job.fail(WorkerDied("It ended.", killed=True))
    assert (job.status, error_of(job).message) == (507, worker_died("It ended."))
    assert not job.cancelled


def test_the_listener_sees_the_status() -> None:
    seen: list[int] = []

    class Look:
        def jobs_ended(self, jobs: list[Job]) -> None:
            seen.extend(job.status for job in jobs)

    job = make_job()
    job.listener = Look()
    job.finish(404)
    assert seen == [404]


@pytest.mark.parametrize("error", [None, DeadlineExceeded("Too late.")])
def test_cancel_says_why(error: ServiceError | None) -> None:
    job = make_job()
    job.cancel(error)
    assert job.cancelled
    if error is None:
        assert isinstance(error_of(job), RequestCancelled)
    else:
        assert error_of(job) is error


def test_cancel_tells_the_owner_of_the_job() -> None:
    waiting, running = make_job(), make_job()
    queue, group = Holder(), Holder()
    waiting.queue = queue
    running.group = group
    for job in (waiting, running, waiting, running):
        job.cancel()
    assert (queue.told, group.told) == ([waiting], [running])


def test_a_job_that_is_done_is_not_cancelled() -> None:
    job, group = make_job(), Holder()
    job.group = group
    job.finish(200)
    job.cancel()
    assert not job.cancelled
    assert group.told == []


@pytest.mark.parametrize("end", ENDS)
def test_the_timer_ends_with_the_job(end: str) -> None:
    async def test() -> None:
        job = make_job()
        job.timer = asyncio.get_running_loop().call_later(1000, job.cancel)
        ENDS[end](job)
        assert job.timer.cancelled()

    run(test())


def test_kinds_and_defaults() -> None:
    job = make_job("abc", b"x", version="2", kind="explain", deadline=5.0)
    assert (job.id, job.model_name, job.version, job.kind, job.deadline) == ("abc", "m", "2", "explain", 5.0)
    assert make_job().kind == "predict"
    assert make_job().enqueued <= make_job().enqueued


def test_answers_to_many_are_told_at_once() -> None:
    one, cancelled, two = (make_job(name) for name in ("one", "cancelled", "two"))
    listener = Listener()
    cancelled.cancel()
    for job in (one, cancelled, two):
        job.listener = listener
    answer_all([(one, b"1"), (cancelled, b"no"), (two, b"")], 201, "", [], 5.0)
    assert [sink_of(job).events for job in (one, two)] == [[201, b"1", "end"], [201, "end"]]
    assert (one.done, one.status, one.first_chunk) == (True, 201, 5.0)
    assert listener.ended == [one, two]
    assert isinstance(error_of(cancelled), RequestCancelled)


def test_the_timers_of_many_end_with_their_answers() -> None:
    async def test() -> None:
        job = make_job()
        job.timer = asyncio.get_running_loop().call_later(1000, job.cancel)
        answer_all([(job, b"1")], 200, "", [], 5.0)
        assert job.timer.cancelled()

    run(test())
