"""Requests of higher classes go first, and none starves."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msx_core.priorities import HIGH, LOW, NAMES, NORMAL, priority_of
from msx_core.service_errors import BadRequest
from msx_frontend.job import DESCRIBE, EXPLAIN, Job
from msx_frontend.job_headers import KeptHeaders
from msx_frontend.queueing.job_queue import JobQueue
from msx_frontend.queueing.priority_queue import TURNS, PriorityQueue
from tests.frontend.jobs import make_job
from tests.frontend.queueing.instance_requests import make_request

pytestmark = pytest.mark.hypothesis


def job_of(name: str, kind: str = "predict") -> Job:
    return make_job(kind=kind, headers=KeptHeaders([("X-MSX-Priority", name)] if name else []))


def queue_of(*jobs: Job, capacity: int = 1000) -> PriorityQueue:
    queue = PriorityQueue(JobQueue(capacity))
    for job in jobs:
        queue.put(job)
    return queue


def test_the_higher_class_goes_first() -> None:
    low, usual, high, other = job_of("low"), job_of(""), job_of("high"), job_of("high")
    queue = queue_of(low, usual, high, other)
    assert queue.head is high
    assert [queue.take(1) for _ in range(4)] == [[high], [other], [usual], [low]]
    assert queue.take(1) == []
    assert queue.head is None


def test_what_waits_already_keeps_its_place() -> None:
    before = [make_job() for _ in range(3)]
    usual = JobQueue(10)
    for job in before:
        usual.put(job)
    queue = PriorityQueue(usual)
    queue.put(later := job_of("normal"))
    assert queue.take(4) == [*before, later]


def test_room_of_a_batch_goes_to_the_other_classes() -> None:
    low, usual, high = job_of("low"), job_of(""), job_of("high")
    assert queue_of(low, usual, high).take(8) == [high, usual, low]


def test_a_batch_is_of_one_kind() -> None:
    explained, high = job_of("", EXPLAIN), job_of("high")
    queue = queue_of(explained, high, job_of("low", DESCRIBE))
    assert queue.take(8) == [high]
    assert queue.take(8) == [explained]


def test_jobs_that_were_not_begun_go_back_to_their_places() -> None:
    high, usual, low = job_of("high"), job_of(""), job_of("low")
    queue = queue_of(low, usual, high)
    queue.put_back(queue.take(3))
    assert [queue.take(1)[0] for _ in range(3)] == [high, usual, low]


def test_capacity_is_of_all_classes_together() -> None:
    queue = queue_of(job_of("low"), job_of("high"), capacity=2)
    assert queue.full
    assert (queue.requests, len(queue), queue.by_class()) == (2, 2, {"low": 1, "normal": 0, "high": 1})


def test_a_cancelled_job_leaves_its_ring() -> None:
    low = job_of("low")
    queue = queue_of(low, job_of("high"))
    low.cancel()
    assert queue.by_class() == {"low": 0, "normal": 0, "high": 1}


@given(
    st.lists(st.sampled_from(sorted(NAMES)), min_size=1, max_size=40),
    st.sampled_from(["low", "normal"]),
    st.integers(0, 5),
    st.integers(1, 3),
)
def test_none_starves(later: list[str], name: str, ahead: int, size: int) -> None:
    """Whatever comes later, a job with n of its class ahead is taken within (n + 1) * (TURNS + 2) batches."""
    queue = queue_of(*(job_of(name) for _ in range(ahead)), mine := job_of(name))
    for _ in range((ahead + 1) * (TURNS + 2)):
        for one in later[: size + 1]:
            queue.put(job_of(one))
        queue.put(job_of("high"))
        if mine in queue.take(size):
            return
    pytest.fail("it starves")


def test_names() -> None:
    assert [priority_of(text) for text in ("", "low", "Normal", " HIGH ")] == [NORMAL, LOW, NORMAL, HIGH]
    with pytest.raises(BadRequest, match="x-msx-priority: 'urgent' is not one of low, normal, high"):
        priority_of("urgent")


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.sampled_from(sorted(NAMES)), st.just(0)),
        st.tuples(st.just("request"), st.sampled_from(sorted(NAMES)), st.integers(1, 4)),
        st.tuples(st.sampled_from(["take", "return", "cancel"]), st.just(""), st.integers(1, 5)),
    ),
    max_size=80,
)


@given(STEPS)
def test_nothing_is_lost_and_each_class_keeps_its_order(steps: list[tuple[str, str, int]]) -> None:
    """Whatever comes, is taken, comes back from a worker that ended, and leaves."""
    queue = PriorityQueue(JobQueue(1000))
    waiting: dict[str, str] = {}
    taken: list[str] = []
    alone: list[Job] = []
    for number, (step, name, count) in enumerate([*steps, ("take", "", 1000)]):
        if step == "put":
            alone.append(job := job_of(name))
            job.id = f"{number:03}"
            waiting[job.id] = name
            queue.put(job)
        elif step == "request":
            request = make_request(f"{number:03}", count)
            request.headers = KeptHeaders([("x-msx-priority", name)])
            waiting.update({f"{number:03}-{at}" if at else f"{number:03}": name for at in range(count)})
            queue.put_request(request)
        elif step == "cancel" and (job := next((one for one in alone if one.queue is not None), job_of(""))).queue:
            del waiting[job.id]
            job.cancel()
        elif step in ("take", "return"):
            jobs = queue.take(count)
            if step == "return":
                queue.put_back(jobs)
            else:
                taken += [one.id for one in jobs]
                _in_order(jobs, alone)
                for one in jobs:
                    del waiting[one.id]
        assert len(queue) == len(waiting)
        assert sum(queue.by_class().values()) == queue.requests
        assert (queue.head is None) == (not waiting)
    assert len(taken) == len(set(taken))


def _in_order(jobs: list[Job], alone: list[Job]) -> None:
    """Requests of one job each come as they were put, within a class; all before them have left."""
    for job in jobs:
        if job in alone:
            before = [one for one in alone if one.id < job.id and one.priority == job.priority]
            assert not [one for one in before if one.queue is not None and one not in jobs]
