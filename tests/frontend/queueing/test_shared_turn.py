"""Text requests take turns in the queue: by key, and of one key by request."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msx_core.priorities import HIGH
from msx_core.service_errors import ServiceUnavailable
from msx_frontend.job import Job
from msx_frontend.queueing.job_queue import JobQueue
from msx_frontend.queueing.priority_queue import PriorityQueue
from msx_sdk.generation import GENERATE, TOKENIZE, Owner
from tests.frontend.jobs import error_of, make_job


class OwnedJob(Job):
    __slots__ = ("owner",)
    owner: Owner


def job(id: str, key: str = "", request: int = 1, kind: str = GENERATE) -> OwnedJob:
    made = make_job(id)
    owned = OwnedJob(id, made.model_name, made.version, made.fields, made.headers, made.sink, kind=kind)
    owned.owner = Owner(key, request)
    return owned


def filled(*jobs: Job, queue: JobQueue | None = None) -> JobQueue:
    queue = JobQueue(100) if queue is None else queue
    for one in jobs:
        queue.put(one)
    return queue


def ids(jobs: list[Job]) -> list[str]:
    return [one.id for one in jobs]


def test_a_request_of_many_jobs_has_one_turn() -> None:
    queue = filled(*(job(f"a{n}") for n in range(5)), job("b", request=2), make_job("c"))
    queue.put(job("a5"))
    assert (len(queue), queue.requests) == (8, 3)
    assert ids(queue.take(2)) == ["a0", "b"]
    assert (len(queue), queue.requests) == (6, 2)
    plain = queue.take(1)
    assert ids(plain) == ["c"]
    assert ids(queue.take(9)) == ["a1", "a2", "a3", "a4", "a5"]
    assert (len(queue), queue.requests, queue.head) == (0, 0, None)


def test_keys_take_turns_and_requests_of_one_key() -> None:
    queue = filled(*(job(f"x{n}", "x", n) for n in range(3)), job("x0b", "x", 0), job("y0", "y", 9), job("y1", "y", 9))
    assert queue.requests == 4
    assert ids(queue.take(9)) == ["x0", "y0", "x1", "y1", "x2", "x0b"]


def test_places_are_counted_by_request() -> None:
    queue = JobQueue(3)
    for one in (job("a", "x", 1), job("b", "x", 1), job("c", "x", 2)):
        queue.put(one)
        assert not queue.full
    queue.put(job("d", "x", 3))
    assert queue.full
    queue.take(1)
    assert queue.full  # another job of the same request waits
    queue.take(1)
    assert not queue.full


def test_who_leaves_is_forgotten() -> None:
    first, second, other = job("a"), job("b"), job("c", request=2)
    queue = filled(first, second, other)
    for one, left in ((first, 2), (second, 1), (other, 0)):
        one.cancel()
        assert len(queue) == left
    assert (queue.requests, queue.head, queue.oldest_age) == (0, None, 0.0)


def test_what_a_group_had_not_begun_is_next_again() -> None:
    queue = filled(job("a0"), job("a1"), job("b", request=2))
    queue.put_back(queue.take(1))
    assert ids(queue.take(9)) == ["a0", "b", "a1"]
    queue = filled(job("a0"), job("b", request=2))
    queue.put_back(queue.take(1))
    assert (len(queue), queue.requests) == (2, 2)
    assert ids(queue.take(9)) == ["a0", "b"]


def test_those_that_wait_too_long_fail() -> None:
    old, new, plain = job("a"), job("b"), make_job("c")
    old.enqueued = time.monotonic() - 100
    queue = filled(old, new, plain)
    assert queue.oldest_age >= 100
    queue.expire(50)
    assert old.done
    assert not new.done
    assert (len(queue), queue.requests) == (2, 2)


def test_all_fail_together() -> None:
    jobs = [job("a", "x", 1), job("b", "x", 1), job("c", "x", 2), make_job("d")]
    queue = filled(*jobs)
    queue.fail_all(ServiceUnavailable("gone"))
    assert [one.done for one in jobs] == [True] * 4
    assert isinstance(error_of(jobs[0]), ServiceUnavailable)
    assert (len(queue), queue.requests) == (0, 0)


def test_a_batch_is_of_one_kind() -> None:
    queue = filled(job("a"), job("t", request=2, kind=TOKENIZE), job("b", request=3))
    assert ids(queue.take(9)) == ["a", "b"]
    assert ids(queue.take(9)) == ["t"]


def test_in_a_queue_with_classes_too() -> None:
    urgent = job("u", "x", 3)
    urgent.priority = HIGH
    queue = filled(job("a0", "x", 1), job("a1", "x", 1), job("b", "x", 2), urgent, queue=PriorityQueue(JobQueue(100)))
    assert (len(queue), queue.requests) == (4, 3)
    assert ids(queue.take(9)) == ["u", "a0", "b", "a1"]


@pytest.mark.parametrize("neighbour", [job("n", "", 2), job("n", "y", 2), make_job("n")], ids=["none", "key", "plain"])
def test_a_neighbour_of_thousands_of_jobs_is_next(neighbour: Job) -> None:
    key = "x" if neighbour.owner is not None and neighbour.owner.key else ""
    queue = filled(*(job(str(n), key) for n in range(2048)))
    queue.put(neighbour)
    assert neighbour in [*queue.take(1), *queue.take(1)]


@given(st.lists(st.tuples(st.sampled_from(["", "x", "y"]), st.integers(1, 4), st.booleans()), max_size=20))
def test_the_counts_are_those_of_what_waits(came: list[tuple[str, int, bool]]) -> None:
    queue, waiting = JobQueue(100), list[Job]()
    for number, (key, request, leaves) in enumerate(came):
        one = job(str(number), key, request)
        queue.put(one)
        waiting.append(one)
        if leaves:
            waiting.remove(taken := queue.take(1)[0])
            assert taken.queue is None
        assert len(queue) == len(waiting)
        assert queue.requests == len({(it.owner.key, it.owner.request) for it in waiting if it.owner is not None})
