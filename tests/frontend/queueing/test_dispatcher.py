"""Which group gets which jobs, and when: admission, tickets, batches, prefetch, deadlines. The groups are fakes."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from functools import wraps
from typing import Any

import pytest

from msx_core.config import ModelConfig
from msx_core.service_errors import Overloaded, ServiceUnavailable, WorkerDied
from msx_frontend.job import DESCRIBE, EXPLAIN, STREAM, Job
from msx_frontend.queueing import queue_watch
from msx_frontend.queueing.ahead import AHEAD, JOINS_FROM, MOST_AHEAD, ONLY_BELOW, OVERLAPPED, PREFETCH_BELOW
from msx_frontend.queueing.answer_rate import AnswerRate
from msx_frontend.queueing.batch_target import BatchTarget
from msx_frontend.queueing.dispatcher import UNHEARD, Dispatcher
from msx_frontend.queueing.events import QueueEvents
from tests.frontend.jobs import error_of, make_job
from tests.loops import run
from tests.phrases import no_worker
from tests.retry import told_wait


class FakeGroup:
    """Room for one batch, and for as many `ahead` as it is asked for; or for `max_concurrent` jobs."""

    def __init__(self, *, batch_size: int = 4, max_concurrent: int = 0) -> None:
        self.batches: list[list[Job]] = []
        self.cancelled: list[Job] = []
        self.joins: list[bool] = []
        self.unsent = 0
        """Batches that were taken and have not left yet."""
        self.calls = 0
        """How often batches were handed to it."""
        self.batch_size, self.max_concurrent = batch_size, max_concurrent
        self.continuous = self.overlaps = False
        self.seconds: dict[str, float] = {}
        """By method, what a batch takes."""

    def typical_seconds(self, kind: str) -> float:
        return self.seconds.get(kind, math.inf)

    @property
    def is_async(self) -> bool:
        return self.max_concurrent > 0

    @property
    def busy(self) -> int:
        return sum(len(batch) for batch in self.batches)

    @property
    def idle(self) -> bool:
        return not self.batches

    def room(self, *, ahead: int = 0) -> int:
        if self.is_async:
            return self.max_concurrent - self.busy
        return self.batch_size * max(1 + ahead - len(self.batches), 0)

    @property
    def room_to_join(self) -> int:
        return self.batch_size - sum(map(len, self.batches[1:])) if self.batches else 0

    def predict(self, jobs: list[Job], *, joins: bool = False) -> None:
        assert 0 < len(jobs) <= max(self.room(ahead=MOST_AHEAD + OVERLAPPED), self.room_to_join if joins else 0)
        for job in jobs:
            job.group = self
        size = 1 if self.is_async else self.batch_size
        batches = [jobs[start : start + size] for start in range(0, len(jobs), size)]
        assert len(jobs) <= size or not len(jobs) % size
        self.batches += [jobs] if self.is_async else batches
        self.joins += [joins] * len(batches)
        self.unsent += len(batches)
        self.calls += 1

    def flush(self) -> None:
        """Forget the jobs that `predict` took, which have left."""
        self.unsent = 0

    def holds(self, job: Job) -> bool:
        return any(job in batch for batch in self.batches)

    def cancel(self, job: Job) -> None:
        self.cancelled.append(job)

    def finish(self) -> None:
        """The batch that was sent first is over."""
        for job in self.batches.pop(0):
            job.finish(200)

    @property
    def ids(self) -> list[list[str]]:
        return [[job.id for job in batch] for batch in self.batches]


class Bench:
    def __init__(self, *groups: FakeGroup, events: QueueEvents = UNHEARD, **config: Any) -> None:
        config = {"batch_size": 4, "max_batch_delay": 0, **config}
        self.dispatcher = Dispatcher("m", "1.0", ModelConfig(**config), events=events)
        self.groups = groups
        targets: list[BatchTarget] = [*groups]  # mypy checks that the fake is what the dispatcher takes
        self.dispatcher.groups += targets

    def submit(self, *names: str, **options: Any) -> list[Job]:
        jobs = [make_job(name, **options) for name in names]
        for job in jobs:
            self.dispatcher.submit(job)
            self.dispatcher.pump()  # as if each came in a turn of the loop of its own
        return jobs

    def learn(self, seconds: float) -> None:
        """Batches take so long."""
        for _ in range(50):
            self.dispatcher.policy.finished(1, seconds)

    def finish(self, group: FakeGroup) -> None:
        group.finish()
        self.dispatcher.pump()


def on_a_loop(test: Callable[..., Any]) -> Callable[..., None]:
    @wraps(test)
    def wrapped(*args: Any, **kwargs: Any) -> None:
        async def call() -> None:
            result = test(*args, **kwargs)
            if asyncio.iscoroutine(result):
                await result

        run(call())

    return wrapped


# -- admission --


@on_a_loop
def test_no_worker_has_torchserves_words() -> None:
    with pytest.raises(ServiceUnavailable) as caught:
        Bench().submit("a")
    assert caught.value.message.startswith(f"{no_worker('m')}. Please use scale workers API to add workers.")
    with pytest.raises(ServiceUnavailable, match=no_worker("m", version="1.0")):
        Bench().submit("a", version="1.0")
    with pytest.raises(ServiceUnavailable, match=r"to serve describe request\. Please use .* add workers\.$"):
        Bench().submit("a", kind=DESCRIBE)


@on_a_loop
def test_jobs_wait_for_workers_that_are_coming() -> None:
    bench = Bench()
    bench.dispatcher.expecting_workers = True
    bench.submit("a", "b")
    assert bench.dispatcher.describe() == {"remainingCapacity": 98, "pendingRequests": 2}
    group = FakeGroup()
    bench.dispatcher.groups.append(group)
    bench.dispatcher.pump()
    assert group.ids == [["a", "b"]]


@on_a_loop
def test_a_full_queue_names_its_limit() -> None:
    bench = Bench(FakeGroup(), job_queue_size=2)
    bench.submit("running", "a", "b")
    with pytest.raises(ServiceUnavailable, match="the queue is full: jobQueueSize is 2"):
        bench.submit("c")


@on_a_loop
def test_a_cancelled_job_makes_room_in_a_full_queue() -> None:
    bench = Bench(FakeGroup(), job_queue_size=2)
    _, a, _ = bench.submit("running", "a", "b")
    a.cancel()
    bench.submit("c")
    bench.finish(bench.groups[0])
    assert bench.groups[0].ids == [["b", "c"]]


@on_a_loop
def test_a_refused_job_leaves_nothing_behind() -> None:
    bench = Bench()
    job = make_job(deadline=time.monotonic() + 100)
    with pytest.raises(ServiceUnavailable):
        bench.dispatcher.submit(job)
    assert job.timer is None
    assert job.queue is None


# -- several batches at once --


@on_a_loop
def test_the_only_group_is_handed_all_full_batches_at_once() -> None:
    bench = Bench(FakeGroup(batch_size=2), batch_size=2)
    bench.learn(AHEAD / 4.5)
    for name in "abcdefg":
        bench.dispatcher.submit(make_job(name))
    bench.dispatcher.pump()
    (group,) = bench.groups
    assert group.ids == [["a", "b"], ["c", "d"], ["e", "f"]]
    assert (group.calls, group.unsent, bench.dispatcher.waiting) == (2, 0, 1)


@on_a_loop
def test_no_more_batches_are_handed_out_than_may_wait() -> None:
    bench = Bench(FakeGroup(batch_size=1), batch_size=1, job_queue_size=100)
    bench.learn(AHEAD / 4.5)
    for number in range(10):
        bench.dispatcher.submit(make_job(str(number)))
    bench.dispatcher.pump()
    assert bench.groups[0].ids == [[str(number)] for number in range(5)]  # the running one, and a millisecond's more
    assert bench.dispatcher.waiting == 5


@on_a_loop
def test_several_groups_take_batches_in_turn() -> None:
    bench = Bench(FakeGroup(batch_size=1), FakeGroup(batch_size=1), batch_size=1)
    bench.learn(AHEAD / 4.5)
    for name in "abcdef":
        bench.dispatcher.submit(make_job(name))
    bench.dispatcher.pump()
    assert [group.ids for group in bench.groups] == [[["a"], ["c"], ["e"]], [["b"], ["d"], ["f"]]]


# -- tickets --


@on_a_loop
def test_a_ticket_is_an_idle_group() -> None:
    bench = Bench(FakeGroup(), FakeGroup(), use_job_ticket=True)
    bench.submit("a", "b")
    with pytest.raises(ServiceUnavailable, match="no job ticket is free"):
        bench.submit("c")
    bench.finish(bench.groups[0])
    bench.submit("d")
    assert [group.ids for group in bench.groups] == [[["d"]], [["b"]]]


@on_a_loop
def test_a_ticket_is_a_free_slot_of_an_async_group() -> None:
    bench = Bench(FakeGroup(max_concurrent=2), use_job_ticket=True)
    bench.submit("a", "b")
    with pytest.raises(ServiceUnavailable, match="no job ticket is free"):
        bench.submit("c")


@on_a_loop
def test_a_job_that_waits_for_its_batch_has_a_ticket() -> None:
    bench = Bench(FakeGroup(), use_job_ticket=True, batching_policy="fixed", max_batch_delay=100_000)
    (job,) = bench.submit("a")
    with pytest.raises(ServiceUnavailable, match="no job ticket is free"):
        bench.submit("b")
    job.cancel()
    bench.submit("c")


# -- batches --


@on_a_loop
def test_the_first_runs_at_once_and_the_next_are_one_batch() -> None:
    bench = Bench(group := FakeGroup())
    bench.submit("a", "b", "c", "d")
    assert group.ids == [["a"]]
    bench.finish(group)
    assert group.ids == [["b", "c", "d"]]


@on_a_loop
def test_batches_are_first_come_first_served_and_no_larger_than_batch_size() -> None:
    bench = Bench(group := FakeGroup())
    bench.submit("x", *"abcdefghi")
    bench.finish(group)
    assert group.ids == [list("abcd")]
    bench.finish(group)
    assert group.ids == [list("efgh")]
    bench.finish(group)
    assert group.ids == [["i"]]


@on_a_loop
def test_a_batch_is_of_one_kind() -> None:
    bench = Bench(group := FakeGroup())
    bench.submit("x", "a")
    bench.submit("b", kind=EXPLAIN)
    bench.submit("c")
    bench.finish(group)
    assert group.ids == [["a"]]
    bench.finish(group)
    assert group.ids == [["b"]]


@on_a_loop
def test_a_stream_shares_no_batch() -> None:
    bench = Bench(group := FakeGroup())
    bench.submit("x", "a")
    bench.submit("s", "t", kind=STREAM)
    bench.submit("b", "c")
    for batch in (["a"], ["s"], ["t"], ["b", "c"]):
        bench.finish(group)
        assert group.ids == [batch]


@on_a_loop
@pytest.mark.parametrize("config", [{"stream_batching": True}, {"continuous_batching": True}])
def test_a_stream_shares_batches_where_the_model_says_so(config: dict[str, Any]) -> None:
    bench = Bench(group := FakeGroup(), **config)
    bench.submit("x", "a")
    bench.submit("s", "t", kind=STREAM)
    bench.finish(group)
    assert group.ids == [["a", "s", "t"]]


@on_a_loop
def test_a_stream_neither_waits_for_others_nor_joins_them() -> None:
    bench = Bench(group := FakeGroup(), batching_policy="fixed", max_batch_delay=100_000)
    bench.submit("s", kind=STREAM)
    assert group.ids == [["s"]]
    bench.finish(group)
    bench.submit("a")
    assert group.ids == []
    bench.dispatcher.close()
    bench = Bench(group := FakeGroup())
    bench.learn(JOINS_FROM)
    bench.submit("a", "b", "c")
    bench.submit("s", kind=STREAM)
    assert group.ids == [["a"], ["b"], ["c"]]
    assert group.joins == [True, True, True]


@on_a_loop
def test_the_least_busy_group_is_next() -> None:
    first, second = FakeGroup(max_concurrent=8), FakeGroup(max_concurrent=8)
    bench = Bench(first, second)
    bench.submit("a", "b", "c", "d", "e")
    assert (first.ids, second.ids) == ([["a"], ["c"], ["e"]], [["b"], ["d"]])
    bench.finish(first)
    bench.finish(first)
    bench.submit("f")
    assert first.ids == [["e"], ["f"]]


@on_a_loop
def test_an_async_group_is_full_at_max_concurrent() -> None:
    bench = Bench(group := FakeGroup(max_concurrent=2), max_batch_delay=100_000, batching_policy="fixed")
    bench.submit("a", "b", "c")
    assert group.ids == [["a"], ["b"]]  # and it never waits for a batch
    bench.finish(group)
    assert group.ids == [["b"], ["c"]]


@on_a_loop
def test_those_put_back_go_first() -> None:
    bench = Bench(group := FakeGroup())
    bench.submit("x", "a", "b", "c")
    bench.finish(group)
    (returned,) = group.batches
    bench.submit("d")
    group.batches.clear()
    bench.dispatcher.put_back(returned)
    assert group.ids == [["a", "b", "c", "d"]]


@on_a_loop
async def test_a_fixed_batch_leaves_when_its_time_is_up() -> None:
    bench = Bench(group := FakeGroup(), batching_policy="fixed", max_batch_delay=20)
    jobs = bench.submit("a", "b")
    assert group.ids == []
    while not group.batches:
        await asyncio.sleep(0.001)
    assert group.batches == [jobs]
    assert time.monotonic() - jobs[0].enqueued >= 0.02


@on_a_loop
def test_a_fixed_batch_leaves_when_it_is_full() -> None:
    bench = Bench(group := FakeGroup(), batching_policy="fixed", max_batch_delay=100_000)
    bench.submit("a", "b", "c")
    assert group.ids == []
    bench.submit("d")
    assert group.ids == [["a", "b", "c", "d"]]


@on_a_loop
def test_batches_leave_in_the_turn_in_which_they_were_handed_out() -> None:
    first, second = FakeGroup(batch_size=1), FakeGroup(batch_size=1)
    bench = Bench(first, second, batch_size=1)
    bench.submit("a", "b")
    assert (first.ids, second.ids) == ([["a"]], [["b"]])
    assert (first.unsent, second.unsent) == (0, 0)


# -- batches ahead --


@on_a_loop
def test_more_than_a_batch_that_waits_is_sent_ahead_too() -> None:
    group = FakeGroup(batch_size=2)
    bench = Bench(group, batch_size=2)
    bench.learn(JOINS_FROM / 10)
    for name in "abcde":
        bench.dispatcher.submit(make_job(name))
    bench.dispatcher.pump()
    assert group.ids == [["a", "b"], ["c", "d"]]
    assert bench.dispatcher.waiting == 1


def loaded(seconds: float, *groups: FakeGroup, **config: Any) -> Bench:
    """Batches take so long; one runs on the first group, and a full one waits."""
    bench = Bench(*groups, **config)
    bench.learn(seconds)
    bench.submit("x")
    if not config.get("use_job_ticket"):
        bench.submit("a", "b", "c", "d")
    return bench


@on_a_loop
def test_a_busy_group_may_hold_the_next_batch_where_batches_are_short() -> None:
    group = FakeGroup()
    loaded(JOINS_FROM / 10, group)
    assert group.ids == [["x"], list("abcd")]


@on_a_loop
@pytest.mark.parametrize(
    ("seconds", "ahead"),
    [(1e-3 / 2.5, 2), (1e-3 / 10.5, 10), (1e-3 / 31.5, 31), (1e-6, MOST_AHEAD), (0.0, MOST_AHEAD)],
)
def test_so_many_batches_wait_in_the_socket_as_a_millisecond_holds(seconds: float, ahead: int) -> None:
    group = FakeGroup(batch_size=1)
    bench = Bench(group, batch_size=1)
    bench.learn(seconds)
    bench.submit(*map(str, range(MOST_AHEAD + 10)))
    assert len(group.batches) == 1 + ahead
    assert bench.dispatcher.waiting == MOST_AHEAD + 9 - ahead


@on_a_loop
@pytest.mark.parametrize("seconds", [0.0006, PREFETCH_BELOW * 0.99])
def test_each_group_holds_one_batch_ahead_where_batches_take_longer_than_a_millisecond(seconds: float) -> None:
    first, second = FakeGroup(batch_size=1), FakeGroup(batch_size=1)
    bench = Bench(first, second, batch_size=1)
    bench.learn(seconds)
    bench.submit(*"abcdef")
    assert (first.ids, second.ids) == ([["a"], ["c"]], [["b"], ["d"]])


@on_a_loop
def test_not_where_they_are_long() -> None:
    group = FakeGroup()
    loaded(ONLY_BELOW * 2, group)
    assert group.ids == [["x"]]


@on_a_loop
def test_the_only_group_holds_a_batch_ahead_for_longer_than_several_do() -> None:
    """No other one becomes free earlier."""
    group = FakeGroup()
    loaded(PREFETCH_BELOW * 2, group)
    assert len(group.ids) == 2
    first, second = FakeGroup(batch_size=1), FakeGroup(batch_size=1)
    bench = Bench(first, second, batch_size=1)
    bench.learn(PREFETCH_BELOW * 2)
    bench.submit(*"abcdef")
    assert (first.ids, second.ids) == ([["a"]], [["b"]])


@on_a_loop
def test_not_before_anything_is_known() -> None:
    bench = Bench(group := FakeGroup())
    bench.submit("x", "a", "b", "c", "d")
    assert group.ids == [["x"]]


@on_a_loop
def test_not_a_batch_that_could_still_grow() -> None:
    bench = Bench(group := FakeGroup())
    bench.learn(JOINS_FROM / 10)
    bench.submit("x", "a", "b", "c")
    assert group.ids == [["x"]]


@on_a_loop
def test_the_only_worker_gets_the_next_batch_as_it_comes_where_batches_take_a_while() -> None:
    """It begins it with all that are there when it is free."""
    bench = Bench(group := FakeGroup())
    bench.learn(JOINS_FROM)
    bench.submit("x", "a", "b", "c", "d", "e")
    assert group.ids == [["x"], ["a"], ["b"], ["c"], ["d"]]  # and no more than one batch holds
    assert group.joins == [True] * 5
    bench.finish(group)
    assert group.ids == [["a"], ["b"], ["c"], ["d"], ["e"]]


@on_a_loop
def test_only_predictions_join() -> None:
    bench = Bench(group := FakeGroup())
    bench.learn(JOINS_FROM)
    bench.submit("x", "a", kind=EXPLAIN)
    assert (group.ids, group.joins) == ([["x"]], [False])


@on_a_loop
def test_no_request_joins_where_another_worker_may_be_free_first() -> None:
    bench = Bench(first := FakeGroup(), second := FakeGroup())
    bench.learn(JOINS_FROM)
    bench.submit("x", "y", "a")
    assert (first.ids, second.ids) == ([["x"]], [["y"]])


@on_a_loop
def test_a_job_that_may_join_does_not_wait_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """The worker is busy: other jobs come meanwhile."""
    bench = Bench(group := FakeGroup())
    bench.learn(JOINS_FROM)
    bench.submit("x")
    monkeypatch.setattr(bench.dispatcher.policy, "wait", lambda *_: 60.0)
    bench.submit("a")
    assert group.ids == [["x"], ["a"]]
    bench.finish(group)
    bench.finish(group)
    bench.submit("b")
    assert group.idle


@on_a_loop
def test_not_while_another_group_is_free() -> None:
    first, second = FakeGroup(), FakeGroup()
    bench = Bench(first, second)
    bench.learn(0.001)
    bench.submit("x", "a", "b", "c", "d")
    assert (first.ids, second.ids) == ([["x"]], [["a"]])
    bench.submit("e")
    assert sorted(first.ids + second.ids) == [["a"], ["b", "c", "d", "e"], ["x"]]


@on_a_loop
def test_never_with_tickets() -> None:
    group = FakeGroup(batch_size=1)
    bench = loaded(0.001, group, use_job_ticket=True, batch_size=1)
    with pytest.raises(ServiceUnavailable, match="no job ticket"):
        bench.submit("a")
    bench.dispatcher.put_back([make_job("returned")])
    assert group.ids == [["x"]]


@on_a_loop
def test_never_with_the_fixed_policy() -> None:
    bench = Bench(group := FakeGroup(batch_size=1), batching_policy="fixed", batch_size=1)
    bench.learn(0.001)
    bench.submit("x", "a")
    assert group.ids == [["x"]]


# -- deadlines --


@on_a_loop
async def test_a_deadline_is_answered_while_the_job_waits() -> None:
    bench = Bench(group := FakeGroup())
    bench.submit("x")
    (job,) = bench.submit("a", deadline=time.monotonic() + 0.01)
    while not job.done:
        await asyncio.sleep(0.001)
    assert error_of(job).status == 504
    assert "waiting in the queue" in error_of(job).message
    assert len(bench.dispatcher.queue) == 0
    bench.finish(group)
    assert group.ids == []


@on_a_loop
async def test_a_deadline_cancels_a_running_job() -> None:
    bench = Bench(group := FakeGroup())
    (job,) = bench.submit("a", deadline=time.monotonic() + 0.01)
    while not job.done:
        await asyncio.sleep(0.001)
    assert error_of(job).status == 504
    assert "running" in error_of(job).message
    assert group.cancelled == [job]


@on_a_loop
async def test_a_deadline_that_has_passed() -> None:
    bench = Bench(FakeGroup())
    bench.submit("x")
    (job,) = bench.submit("a", deadline=time.monotonic() - 5)
    while not job.done:
        await asyncio.sleep(0)
    assert error_of(job).status == 504


@on_a_loop
async def test_nothing_waits_longer_than_response_timeout() -> None:
    bench = Bench(FakeGroup(), response_timeout=10)
    bench.submit("x")
    job, young = make_job("old"), make_job("young")
    job.enqueued -= 11
    bench.dispatcher.submit(job)
    bench.dispatcher.submit(young)
    while not job.done:
        await asyncio.sleep(0.01)
    assert "for 10 s, its responseTimeout" in error_of(job).message
    assert not young.done


@on_a_loop
async def test_close_leaves_no_timer() -> None:
    bench = Bench(FakeGroup(), batching_policy="fixed", max_batch_delay=200)
    (job,) = bench.submit("a")
    bench.dispatcher.close()
    await asyncio.sleep(0.25)  # the delay is over, and nothing looks any more
    assert not bench.groups[0].batches
    job.fail(WorkerDied("It ended."))


# -- when to ask again --


@on_a_loop
def test_a_refused_client_is_told_the_time_of_the_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: clock)
    bench = Bench(FakeGroup(), job_queue_size=8)
    bench.submit(*"abcdefghi")
    clock += 2
    bench.dispatcher.answered += 4
    with pytest.raises(Overloaded) as refused:
        bench.submit("m")
    assert 4 <= told_wait(dict(refused.value.headers)) <= 8
    assert refused.value.plain.startswith("The queue is full: jobQueueSize is 8 (model m).")
    assert refused.value.message.startswith(no_worker("m"))
    bench.dispatcher.close()


@on_a_loop
def test_before_the_first_answer_the_time_is_that_of_the_batches_of_all_workers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Eight wait, and two workers take four each: as long as has been waited for already."""
    clock = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: clock)
    bench = Bench(FakeGroup(), FakeGroup(), job_queue_size=8)
    bench.learn(PREFETCH_BELOW * 10)
    bench.submit(*"abcdefghij")
    clock += 9
    with pytest.raises(Overloaded) as refused:
        bench.submit("m")
    assert 9 <= told_wait(dict(refused.value.headers)) <= 18


# -- what the policy and the rate are told --


@on_a_loop
def test_where_workers_have_failed_requests_hear_why() -> None:
    bench = Bench()
    bench.dispatcher.expecting_workers, bench.dispatcher.refusal = True, "The last load failed."
    with pytest.raises(ServiceUnavailable, match=r"^The last load failed\.$"):
        bench.submit("a")


@on_a_loop
def test_a_full_queue_is_emptied_first_where_a_group_is_free() -> None:
    """The jobs of one turn of the loop may be more than the queue holds."""
    bench = Bench(group := FakeGroup(batch_size=1), batch_size=1, job_queue_size=1)
    for name in ("a", "b"):
        bench.dispatcher.submit(make_job(name))
    assert group.ids == [["a"]]
    assert bench.dispatcher.waiting == 1
    with pytest.raises(Overloaded, match="jobQueueSize is 1"):
        bench.dispatcher.submit(make_job("c"))


@on_a_loop
def test_a_full_batch_waits_for_no_policy(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(group := FakeGroup(batch_size=2), batch_size=2)
    monkeypatch.setattr(bench.dispatcher.policy, "wait", lambda *_: 60.0)
    bench.submit("a")
    assert group.ids == []
    bench.submit("b")
    assert group.ids == [["a", "b"]]


@on_a_loop
@pytest.mark.parametrize("config", [{"use_job_ticket": True}, {"batch_size": 1}])
def test_what_is_alone_in_its_batch_joins_none(config: dict[str, Any]) -> None:
    bench = Bench(group := FakeGroup(batch_size=config.get("batch_size", 4)), **config)
    bench.learn(JOINS_FROM)
    bench.submit("x")
    assert group.joins == [False]


@on_a_loop
def test_one_wait_replaces_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(FakeGroup())
    monkeypatch.setattr(bench.dispatcher.policy, "wait", lambda *_: 60.0)
    loop, timers = asyncio.get_running_loop(), list[asyncio.TimerHandle]()
    later = loop.call_later

    def call_later(delay: float, call: Any, *args: Any) -> asyncio.TimerHandle:
        timers.append(later(delay, call, *args))
        return timers[-1]

    bench.submit("a")
    monkeypatch.setattr(loop, "call_later", call_later)
    bench.submit("b", "c")
    assert [timer.cancelled() for timer in timers] == [True, False]


@on_a_loop
def test_the_policy_knows_arrivals_and_idle_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(FakeGroup(), busy := FakeGroup(), FakeGroup())
    busy.batches.append([make_job("x")])
    arrived: list[float] = []
    asked: list[tuple[int, int]] = []

    def wait(now: float, waiting: int, oldest: float, idle: int) -> float:
        asked.append((waiting, idle))
        return 60.0

    monkeypatch.setattr(bench.dispatcher.policy, "arrived", arrived.append)
    monkeypatch.setattr(bench.dispatcher.policy, "wait", wait)
    jobs = bench.submit("a", "b")
    assert asked == [(1, 2), (2, 2)]
    assert arrived == [job.enqueued for job in jobs]


class FakeRate(AnswerRate):
    def __init__(self) -> None:
        super().__init__()
        self.calls: list[str] = []
        self.at_once: list[int] = []

    def sample(self, now: float, answered: float) -> None:
        self.calls.append("sample")

    def pause(self, now: float, answered: float) -> None:
        self.calls.append("pause")

    def seconds(self, now: float, answered: float, waiting: int, at_once: int) -> float:
        self.at_once.append(at_once)
        return 1.0


@on_a_loop
async def test_the_rate_is_measured_while_requests_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue_watch, "EXPIRY_LOOK", 0.001)
    bench = Bench(group := FakeGroup())
    monkeypatch.setattr(bench.dispatcher._watch, "_rate", rate := FakeRate())
    bench.submit("x")
    assert rate.calls == []
    bench.submit("a")
    while rate.calls.count("sample") < 3:
        await asyncio.sleep(0.001)
    bench.finish(group)
    while "pause" not in rate.calls:
        await asyncio.sleep(0.001)
    assert rate.calls.count("pause") == 1


@on_a_loop
def test_the_rate_knows_how_many_are_answered_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(FakeGroup(), FakeGroup(), job_queue_size=1)
    monkeypatch.setattr(bench.dispatcher._watch, "_rate", rate := FakeRate())
    bench.submit("x", "y", "a")
    with pytest.raises(Overloaded):
        bench.submit("b")
    assert rate.at_once == [8]
