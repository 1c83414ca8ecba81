"""A request with instances at the dispatcher: whole or not at all, places, tickets, deadlines, what is sent ahead."""

from __future__ import annotations

import asyncio
import time

import pytest

from msx_core.service_errors import Overloaded, PayloadTooLarge, ServiceUnavailable
from msx_frontend.job import Job
from msx_frontend.queueing.ahead import AHEAD, MOST_AHEAD
from msx_frontend.queueing.instances import InstanceRequest
from tests.frontend.queueing.instance_requests import answers_of, make_request
from tests.frontend.queueing.test_dispatcher import Bench, FakeGroup, on_a_loop
from tests.phrases import no_worker


def submit(bench: Bench, *requests: InstanceRequest) -> None:
    for request in requests:
        bench.dispatcher.submit_instances(request)
        bench.dispatcher.pump()


def finish_all(bench: Bench, group: FakeGroup) -> None:
    while group.batches:
        for job in group.batches[0]:
            job.answer(200, "", [], job.fields[0].data)
        bench.finish(group)


@on_a_loop
def test_instances_are_split_over_workers_and_joined_in_order() -> None:
    bench = Bench(one := FakeGroup(), two := FakeGroup())
    submit(bench, request := make_request("a", 10))
    assert (one.ids, two.ids) == ([["a", "a-1", "a-2", "a-3"]], [["a-4", "a-5", "a-6", "a-7"]])
    assert bench.dispatcher.describe() == {"remainingCapacity": 99, "pendingRequests": 1}
    finish_all(bench, two)
    assert bench.dispatcher.describe() == {"remainingCapacity": 100, "pendingRequests": 0}
    finish_all(bench, one)
    assert answers_of(request).bodies == [b"%d" % at for at in range(10)]


@on_a_loop
def test_idle_groups_divide_instances() -> None:
    bench = Bench(one := FakeGroup(), two := FakeGroup(), three := FakeGroup())
    submit(bench, request := make_request("a", 5))
    assert (one.ids, two.ids, three.ids) == ([["a", "a-1"]], [["a-2", "a-3"]], [["a-4"]])
    for group in (one, two, three):
        finish_all(bench, group)
    assert answers_of(request).bodies == [b"%d" % at for at in range(5)]


@on_a_loop
def test_another_clients_request_is_in_the_next_batch() -> None:
    bench = Bench(one := FakeGroup(), two := FakeGroup())
    submit(bench, make_request("a", 2000))
    (single,) = bench.submit("single")
    bench.finish(two)
    assert two.ids == [["a-8", "single", "a-9", "a-10"]]
    assert single.group is two
    assert one.ids == [["a", "a-1", "a-2", "a-3"]]


@on_a_loop
def test_a_request_is_taken_whole_or_not_at_all() -> None:
    bench = Bench(max_enqueued_instances=10)
    bench.dispatcher.expecting_workers = True
    submit(bench, make_request("a", 6))
    with pytest.raises(Overloaded) as caught:
        submit(bench, make_request("b", 5))
    assert caught.value.plain == (
        "6 instances wait, and the 5 of this request do not fit: maxEnqueuedInstances is 10 (model m). "
        "Ask again later, or add workers."
    )
    with pytest.raises(PayloadTooLarge) as large:
        submit(bench, make_request("c", 11))
    assert large.value.message == (
        "The request has 11 instances, and at most 10 of model m may wait (maxEnqueuedInstances): "
        "send fewer at once, or raise maxEnqueuedInstances."
    )
    submit(bench, make_request("d", 4))
    bench.submit("plain")  # is not an instance
    assert (bench.dispatcher.queue.instances, bench.dispatcher.waiting) == (10, 3)


@on_a_loop
def test_a_free_worker_makes_room_for_instances() -> None:
    bench = Bench(group := FakeGroup(), max_enqueued_instances=6)
    bench.dispatcher.submit_instances(make_request("a", 6))  # in the same turn of the loop
    bench.dispatcher.submit_instances(make_request("b", 4))
    assert group.busy == 4
    with pytest.raises(Overloaded, match="6 instances wait, and the 1 of this request do not fit"):
        submit(bench, make_request("c", 1))


@on_a_loop
def test_a_request_has_one_place_of_the_queue() -> None:
    bench = Bench(job_queue_size=2)
    bench.dispatcher.expecting_workers = True
    submit(bench, request := make_request("a", 50))
    bench.submit("b")
    for late in (lambda: bench.submit("c"), lambda: submit(bench, make_request("d", 2))):
        with pytest.raises(Overloaded, match="the queue is full: jobQueueSize is 2"):
            late()
    request.cancel()
    bench.submit("c")


@on_a_loop
def test_without_workers_it_is_refused_as_others_are() -> None:
    with pytest.raises(ServiceUnavailable, match=no_worker("m", version="1.0")):
        submit(Bench(), make_request("a", 2, version="1.0"))


# -- tickets --


@on_a_loop
def test_a_request_has_one_ticket_until_its_last_instance_is_answered() -> None:
    bench = Bench(one := FakeGroup(), two := FakeGroup(), use_job_ticket=True)
    submit(bench, request := make_request("a", 9))
    assert one.busy == two.busy == 4
    bench.submit("b")  # the second ticket, though both workers are busy
    for late in (lambda: bench.submit("c"), lambda: submit(bench, make_request("d", 2))):
        with pytest.raises(Overloaded, match="no job ticket is free"):
            late()
    finish_all(bench, two)
    assert not request.done
    bench.submit("e")  # b is answered
    with pytest.raises(Overloaded, match="no job ticket is free"):
        bench.submit("f")
    finish_all(bench, one)
    finish_all(bench, two)
    assert request.done
    bench.submit("g", "h")


@on_a_loop
def test_tickets_of_an_async_worker_are_its_slots() -> None:
    bench = Bench(FakeGroup(max_concurrent=3), use_job_ticket=True)
    submit(bench, request := make_request("a", 5))
    bench.submit("b", "c")
    with pytest.raises(Overloaded, match="no job ticket is free"):
        bench.submit("d")
    request.cancel()


# -- time --


@on_a_loop
async def test_the_deadline_is_the_requests() -> None:
    bench = Bench(group := FakeGroup())
    now = time.monotonic()
    requests = [make_request(id, 6, deadline=now + 0.01) for id in "ab"]
    submit(bench, *requests)
    while not all(request.done for request in requests):
        await asyncio.sleep(0.001)
    running, waiting = (str(answers_of(request).bodies[0]) for request in requests)
    assert running.endswith("(clientTimeoutInMills, or its client's own deadline) and was still running for model m.")
    assert waiting.endswith("and was still waiting in the queue for model m.")
    assert len(group.cancelled) == 4
    assert bench.dispatcher.waiting == 0


@on_a_loop
async def test_a_request_that_is_answered_has_no_timer() -> None:
    bench = Bench(group := FakeGroup())
    submit(bench, request := make_request("a", 3, deadline=time.monotonic() + 60))
    finish_all(bench, group)
    assert request.timer is not None
    assert request.timer.cancelled()


@on_a_loop
def test_answers_are_counted_by_requests() -> None:
    bench = Bench(group := FakeGroup())
    submit(bench, make_request("a", 4))
    bench.dispatcher.answered += 4  # as ModelVersion does when the batch is over
    finish_all(bench, group)
    assert bench.dispatcher.answered == pytest.approx(1)


# -- ahead --


@on_a_loop
def test_thousands_of_instances_do_not_fill_the_workers_socket() -> None:
    bench = Bench(group := FakeGroup())
    bench.learn(AHEAD / 5)
    submit(bench, make_request("a", 2000))
    assert len(group.batches) == 1 + 5  # a millisecond's work, whatever waits
    (single,) = bench.submit("single")
    bench.finish(group)
    assert single in group.batches[-1]


@on_a_loop
def test_at_most_so_many_batches_are_ahead() -> None:
    bench = Bench(group := FakeGroup())
    bench.learn(0)
    submit(bench, make_request("a", 2000))
    assert len(group.batches) == 1 + MOST_AHEAD


@on_a_loop
def test_a_slow_method_is_not_sent_ahead_because_others_are_fast() -> None:
    bench = Bench(group := FakeGroup())
    bench.learn(AHEAD / 10)
    submit(bench, make_request("slow", 2000, kind="packed:slow"))
    assert len(group.batches) == 1  # nobody knows yet how long it takes
    group.seconds = {"packed:slow": 0.2, "packed:fast": AHEAD / 2}
    bench.dispatcher.pump()
    assert len(group.batches) == 1
    bench.dispatcher.queue.fail_all(ServiceUnavailable("no"))
    submit(bench, make_request("fast", 2000, kind="packed:fast"))
    assert len(group.batches) == 1 + 2


@on_a_loop
def test_a_batch_that_joins_is_bounded() -> None:
    bench = Bench(group := FakeGroup())
    bench.learn(0.005)
    submit(bench, make_request("a", 2000))
    assert group.busy == 8
    jobs: list[Job] = bench.submit("single")
    bench.finish(group)
    assert any(jobs[0] in batch for batch in group.batches)
