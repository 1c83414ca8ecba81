"""The queue of a model version: order, capacity, kinds, limits."""

from __future__ import annotations

import pytest

from msx_core.service_errors import ServiceUnavailable
from msx_frontend.job import ALONE, DESCRIBE, EXPLAIN, Job
from msx_frontend.queueing.job_queue import JobQueue
from tests.frontend.jobs import error_of, make_job, sink_of


def filled(*jobs: Job, capacity: int = 10) -> JobQueue:
    queue = JobQueue(capacity)
    for job in jobs:
        queue.put(job)
    return queue


def some(count: int) -> list[Job]:
    return [make_job(str(n)) for n in range(count)]


def test_jobs_are_taken_in_order_up_to_the_limit() -> None:
    jobs = some(5)
    queue = filled(*jobs)
    assert queue.head is jobs[0]
    assert queue.take(3) == jobs[:3]
    assert queue.take(3) == jobs[3:]
    assert queue.take(3) == []
    assert queue.head is None


def test_a_job_knows_its_queue_only_while_it_waits() -> None:
    job = make_job()
    queue = filled(job)
    assert job.queue is queue
    queue.take(1)
    assert job.queue is None
    queue.put_back([job])
    assert job.queue is queue


def test_a_batch_is_of_one_kind() -> None:
    jobs = [make_job(), make_job(), make_job(kind=EXPLAIN), make_job(kind=EXPLAIN), make_job(kind=DESCRIBE), make_job()]
    queue = filled(*jobs)
    assert [len(queue.take(8)) for _ in range(5)] == [2, 2, 1, 1, 0]


@pytest.mark.parametrize("kind", sorted(ALONE))
def test_jobs_that_share_no_batch(kind: str) -> None:
    jobs = [make_job(), make_job(kind=kind), make_job(kind=kind), make_job(), make_job()]
    queue = filled(*jobs)
    assert queue.take(0) == []
    assert [len(queue.take(8)) for _ in range(5)] == [1, 1, 1, 2, 0]


def test_what_was_sent_but_not_begun_goes_back_to_the_head_in_order() -> None:
    jobs = some(6)
    queue = filled(*jobs)
    taken = queue.take(3)
    queue.put_back(taken)
    assert queue.take(6) == jobs


def test_the_cancelled_leave_at_once() -> None:
    jobs = some(3)
    queue = filled(*jobs, capacity=3)
    assert queue.full
    jobs[1].cancel()
    assert not queue.full
    assert len(queue) == 2
    queue.put(make_job("new"))
    assert [job.id for job in queue.take(5)] == ["0", "2", "new"]


def test_a_full_queue() -> None:
    queue = filled(*some(2), capacity=2)
    assert queue.full
    queue.take(1)
    assert not queue.full


def test_put_back_may_go_beyond_the_capacity() -> None:
    jobs = some(3)
    queue = filled(*jobs[:2], capacity=2)
    queue.put_back([jobs[2]])
    assert len(queue) == 3
    assert queue.full


def test_age_of_the_oldest() -> None:
    queue = JobQueue(10)
    assert queue.oldest_age == 0
    old, young = make_job(), make_job()
    old.enqueued -= 50
    queue.put(old)
    queue.put(young)
    assert queue.oldest_age >= 50
    old.cancel()
    assert queue.oldest_age < 50


def test_those_that_waited_too_long_are_answered() -> None:
    jobs = some(3)
    for job in jobs[:2]:
        job.enqueued -= 20
    queue = filled(*jobs)
    queue.expire(10)
    assert queue.take(5) == jobs[2:]
    for job in jobs[:2]:
        assert error_of(job).status == 504
        assert error_of(job).message == (
            "The request waited in the queue of model m for 10 s, its responseTimeout; "
            "add workers or raise responseTimeout."
        )
    assert sink_of(jobs[2]).events == []


def test_all_fail_together() -> None:
    jobs = some(3)
    queue = filled(*jobs)
    error = ServiceUnavailable("gone")
    queue.fail_all(error)
    assert [error_of(job) for job in jobs] == [error] * 3
    assert len(queue) == 0


@pytest.mark.parametrize("count", [0, 1])
def test_nothing_to_do(count: int) -> None:
    queue = filled(*some(count))
    queue.expire(10)
    queue.put_back([])
    assert len(queue) == count
