"""Requests take turns in the queue: a batch takes one instance of each."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msx_core.service_errors import ServiceError, ServiceUnavailable
from msx_frontend.job import DESCRIBE, EXPLAIN, Job
from msx_frontend.queueing.instances import InstanceReply, InstanceRequest
from msx_frontend.queueing.job_queue import LOOKED_AT, JobQueue
from tests.frontend.jobs import error_of, make_job
from tests.frontend.queueing.instance_requests import answers_of, make_request

METHOD = "method:x"


def filled(*waiting: Job | InstanceRequest) -> JobQueue:
    queue = JobQueue(10)
    for one in waiting:
        if isinstance(one, InstanceRequest):
            one.place = Place(queue)
            queue.put_request(one)
        else:
            queue.put(one)
    return queue


class Place:
    def __init__(self, queue: JobQueue) -> None:
        self.leave = queue.leave
        self.answered = 0

    def instance_answered(self, request: InstanceRequest) -> None:
        self.answered += 1


def ids(jobs: list[Job]) -> list[str]:
    return [job.id for job in jobs]


def echo(job: Job) -> None:
    job.answer(200, "", [], job.fields[0].data)


def test_a_batch_takes_one_of_each_in_turn() -> None:
    queue = filled(make_request("a", 4), make_request("b", 2), make_job("c"))
    assert (len(queue), queue.requests, queue.instances) == (7, 3, 6)
    assert ids(queue.take(4)) == ["a", "b", "c", "a-1"]
    assert (len(queue), queue.requests, queue.instances) == (3, 2, 3)
    assert ids(queue.take(4)) == ["b-1", "a-2", "a-3"]
    assert (len(queue), queue.requests, queue.head) == (0, 0, None)


def test_a_new_request_is_in_the_next_batch() -> None:
    queue = filled(make_request("a", 2000), make_request("b", 2000))
    queue.take(32)
    queue.put(make_job("new"))
    assert "new" in ids(queue.take(3))


def test_answers_stand_in_the_order_of_the_request() -> None:
    request = make_request("a", 5)
    jobs = filled(request).take(5)
    for job in reversed(jobs):
        echo(job)
    assert answers_of(request).bodies == [b"0", b"1", b"2", b"3", b"4"]
    assert request.done


def test_a_reply_in_pieces_and_an_instance_that_fails_alone() -> None:
    request = make_request("a", 3)
    first, second, third = filled(request).take(3)
    first.sink.start(201, "Made", [("x", "y")])
    first.sink.chunk(b"a")
    first.sink.chunk(b"b")
    first.finish(201)
    second.fail(ServiceUnavailable("no"))
    third.answer(422, "", [], b"bad")
    assert answers_of(request).all[0] == InstanceReply(201, "Made", [("x", "y")], b"ab")
    assert answers_of(request).bodies == [b"ab", "no", b"bad"]
    assert request.status == 503


def test_cancelling_takes_all_instances_away() -> None:
    request, other = make_request("a", 5), make_request("b", 1)
    queue = filled(request, other)
    (running, _) = queue.take(2)
    queue.put_back([queue.take(1)[0]])
    request.cancel()
    request.cancel()
    assert running.cancelled
    assert (queue.requests, queue.instances, request.done, request.waiting) == (0, 0, True, 0)
    assert answers_of(request).bodies == ["The request was cancelled."] * 5
    echo(running)
    assert len(answers_of(request).all) == 5


def test_what_a_dead_group_had_not_begun_goes_back_to_its_request() -> None:
    request, job = make_request("a", 5), make_job("j")
    queue = filled(request, job)
    taken = queue.take(4)
    assert ids(taken) == ["a", "j", "a-1", "a-2"]
    queue.put_back(taken[1:])
    assert (len(queue), queue.requests, queue.instances) == (5, 2, 4)
    assert ids(queue.take(9)) == ["j", "a-1", "a-2", "a-3", "a-4"]
    queue.put_back([taken[2]])  # none of its request waits any more: at the head
    queue.put(make_job("k"))
    assert ids(queue.take(9)) == ["a-1", "k"]


def test_instances_that_wait_too_long_fail_alone() -> None:
    request, old, new = make_request("a", 3), make_job("old"), make_job("new")
    queue = filled(request, old, new)
    (running, _) = queue.take(2)
    queue.put_back([_])
    request.enqueued -= 20
    old.enqueued -= 20
    assert queue.oldest_age >= 20
    queue.expire(10)
    assert error_of(old).status == 504
    assert (len(queue), queue.requests, request.done) == (1, 1, False)
    echo(running)
    expired = "The request waited in the queue of model m for 10 s, its responseTimeout; "
    expired += "add workers or raise responseTimeout."
    assert answers_of(request).bodies == [b"0", expired, expired]


def test_all_fail_together() -> None:
    request, job = make_request("a", 3), make_job()
    queue = filled(request, job)
    queue.fail_all(error := ServiceUnavailable("gone"))
    assert error_of(job) is error
    assert answers_of(request).all == [error] * 3
    assert len(queue) == 0


# -- kinds --


def test_a_batch_passes_over_requests_to_other_methods() -> None:
    queue = filled(
        make_request("a", 3),
        make_request("b", 3, kind=METHOD),
        make_job("p"),
        make_job("m", kind=METHOD),
        make_job("q"),
    )
    assert ids(queue.take(4)) == ["a", "p", "q", "a-1"]
    assert ids(queue.take(4)) == ["b", "m", "b-1", "b-2"]
    assert ids(queue.take(4)) == ["a-2"]


def test_plain_jobs_of_two_kinds_make_no_batches_of_one() -> None:
    queue = filled(*(make_job(str(n), kind=METHOD if n % 2 else "predict") for n in range(6)))
    assert [ids(queue.take(8)) for _ in range(2)] == [["0", "2", "4"], ["1", "3", "5"]]


def test_the_kinds_of_torchserve_keep_their_order() -> None:
    queue = filled(make_job("p"), make_request("a", 2), make_job("e", kind=EXPLAIN), make_job("q"))
    assert [ids(queue.take(8)) for _ in range(3)] == [["p", "a"], ["e"], ["q", "a-1"]]
    queue = filled(make_request("a", 2), make_job("d", kind=DESCRIBE))
    assert [ids(queue.take(8)) for _ in range(3)] == [["a"], ["d"], ["a-1"]]


def test_a_batch_looks_at_so_many_others() -> None:
    queue = JobQueue(LOOKED_AT * 2)
    for one in [make_job("p"), *(make_job(kind=METHOD) for _ in range(LOOKED_AT)), make_job("q")]:
        queue.put(one)
    assert ids(queue.take(8)) == ["p"]


# -- any course of events --


class Model:
    """Model of the queue, in the simplest words: a list of lists."""

    def __init__(self) -> None:
        self.waiting: list[list[str]] = []

    def take(self, most: int) -> list[str]:
        taken: list[str] = []
        while self.waiting and len(taken) < most:
            request = self.waiting.pop(0)
            taken.append(request.pop(0))
            self.waiting += [request] if request else []
        return taken

    def put_back(self, taken: list[str]) -> None:
        for id in reversed(taken):
            name = id.partition("-")[0]
            found = next((one for one in self.waiting if name == one[0].partition("-")[0]), None)
            if found is None:
                self.waiting.insert(0, [id])
            else:
                found.insert(0, id)


STEPS = st.lists(
    st.tuples(st.sampled_from(["put", "take", "back", "cancel", "answer"]), st.integers(0, 7)), max_size=40
)


@given(STEPS)
def test_any_course_of_events(steps: list[tuple[str, int]]) -> None:
    model, queue = Model(), JobQueue(10)
    requests: dict[str, InstanceRequest] = {}
    taken: list[Job] = []

    def put(count: int) -> None:
        request = requests[f"r{len(requests)}"] = make_request(f"r{len(requests)}", count + 1)
        request.place = Place(queue)
        queue.put_request(request)
        model.waiting.append([f"{request.id}-{at}" if at else request.id for at in range(count + 1)])

    def take(count: int) -> None:
        jobs = queue.take(count)
        assert ids(jobs) == model.take(count)
        taken.extend(jobs)

    def back(count: int) -> None:
        batch = [taken.pop() for _ in range(min(count, len(taken)))][::-1]
        queue.put_back(batch)
        model.put_back(ids(batch))

    def cancel(at: int) -> None:
        if request := requests.get(f"r{at}"):
            request.cancel()
            taken[:] = [job for job in taken if not job.done]
            model.waiting = [one for one in model.waiting if one[0].partition("-")[0] != request.id]

    def answer(count: int) -> None:
        for _ in range(min(count, len(taken))):
            echo(taken.pop(0))

    actions: dict[str, Callable[[int], None]] = {
        "put": put, "take": take, "back": back, "cancel": cancel, "answer": answer
    }  # fmt: skip
    for name, value in steps:
        actions[name](value)
        assert len(queue) == queue.instances == sum(map(len, model.waiting))
        assert queue.requests == len(model.waiting)
        assert ids(queue.take(0)) == []
    answer(len(taken))
    while jobs := queue.take(3):
        assert ids(jobs) == model.take(3)
        for job in jobs:
            echo(job)
    for request in requests.values():
        bodies = answers_of(request).bodies
        cancelled = any(isinstance(one, ServiceError) for one in answers_of(request).all)
        assert cancelled or bodies == [b"%d" % at for at in range(request.size)]
        assert len(bodies) == request.size


@pytest.mark.parametrize("count", [1, 3])
def test_a_request_needs_an_instance(count: int) -> None:
    assert make_request("a", count).waiting == count
    with pytest.raises(ValueError, match="a request needs an instance"):
        make_request("a", 0)
