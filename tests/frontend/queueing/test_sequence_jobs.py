"""Which request of which sequence goes where, and how sequences end. The groups here only remember."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from msx_core.config import ModelConfig
from msx_core.sequences import SequenceKeys
from msx_core.service_errors import RequestCancelled, ServiceUnavailable, WorkerDied
from msx_frontend.job import DESCRIBE, EXPLAIN, PREDICT, STREAM, Job
from msx_frontend.queueing import sequence_jobs, sequences
from msx_frontend.queueing.dispatcher import Dispatcher
from msx_frontend.workers.handed_group import HandedSequence
from tests.frontend.jobs import error_of, make_job, sink_of
from tests.frontend.queueing.instance_requests import make_request
from tests.frontend.queueing.test_dispatcher import FakeGroup, on_a_loop
from tests.phrases import no_worker, worker_died

KEYS = SequenceKeys("Seq", "Seq-Start", "Seq-End")


class Group(FakeGroup):
    def __init__(self, *, batch_size: int = 4, slots: int = 0) -> None:
        super().__init__(batch_size=batch_size, max_concurrent=slots)
        self.continuous = slots > 0


class Bench:
    def __init__(self, *groups: Group, **config: Any) -> None:
        usual = {"sequence_batching": True, "sequence_max_idle_msec": 600_000, "max_num_sequence": 10}
        config = {**usual, "max_sequence_job_queue_size": 3, "max_batch_delay": 0, **config}
        self.dispatcher = Dispatcher("m", "1.0", ModelConfig(**config), KEYS)
        self.groups = groups
        for group in groups:
            self.dispatcher.group_ready(group)

    def submit(self, name: str, sequence: str | None = None, /, *headers: str, **options: Any) -> Job:
        job = make_job(name, **options)
        job.headers = [("seq", sequence)] if sequence is not None else []
        job.headers += [(header, "true") for header in headers]
        self.dispatcher.submit(job)
        return job

    def finish(self, group: Group) -> None:
        group.finish()
        self.dispatcher.group_has_room(group)

    def refused(self, *args: str, match: str) -> None:
        with pytest.raises(ServiceUnavailable, match=match) as caught:
            self.submit(*args)
        assert caught.value.message.startswith(no_worker("m"))
        assert "exceeds maxSequenceJobQueueSize (" in caught.value.message


async def until_idle(bench: Bench) -> None:
    while not bench.dispatcher.sequences.open.why_ended("a"):
        await asyncio.sleep(0.001)


@on_a_loop
def test_only_stateful_models_have_sequences() -> None:
    for idle, known in ((0, False), (1, True)):
        dispatcher = Dispatcher("m", "1.0", ModelConfig(sequence_batching=True, sequence_max_idle_msec=idle), KEYS)
        dispatcher.expecting_workers = True
        job = make_job("a")
        job.headers = [("seq", "s")]
        dispatcher.submit(job)
        assert dispatcher.has_sequence_of(job) is known
        dispatcher.close()


@on_a_loop
def test_one_request_of_each_sequence_in_a_batch_and_in_order() -> None:
    group = Group()
    bench = Bench(group)
    bench.submit("a1", "a")
    for name in ("a2", "a3", "b1", "c1"):
        bench.submit(name, name[0])
    assert group.ids == [["a1"]]
    assert bench.dispatcher.describe() == {"remainingCapacity": 26, "pendingRequests": 4}
    bench.finish(group)
    assert group.ids == [["a2", "b1", "c1"]]
    bench.finish(group)
    assert group.ids == [["a3"]]
    assert bench.dispatcher.waiting == 0


@on_a_loop
def test_predictions_and_explanations_share_no_batch_whichever_came_first() -> None:
    for first, second in ((EXPLAIN, PREDICT), (PREDICT, EXPLAIN)):
        group = Group()
        bench = Bench(group)
        bench.submit("a1", "a")
        bench.submit("b1", "b", kind=first)
        bench.submit("c1", "c", kind=second)
        bench.finish(group)
        assert group.ids == [["b1"]]
        bench.finish(group)
        assert group.ids == [["c1"]]


@on_a_loop
def test_requests_to_methods_belong_to_sequences_too() -> None:
    group = Group()
    bench = Bench(group)
    bench.submit("a1", "a")
    bench.submit("a2", "a", kind="method:x")
    bench.submit("b1", "b", kind="method:x")
    assert group.ids == [["a1"]]
    bench.finish(group)
    assert group.ids == [["a2", "b1"]]


@on_a_loop
def test_instances_wait_beside_sequences() -> None:
    group = Group()
    bench = Bench(group)
    bench.submit("a1", "a")
    bench.submit("a2", "a")
    bench.dispatcher.submit_instances(request := make_request("r", 3, kind="packed:x"))
    assert bench.dispatcher.waiting == 2
    bench.finish(group)
    bench.finish(group)
    bench.finish(group)
    assert request.done


@on_a_loop
def test_a_sequence_whose_waiting_client_left_does_not_hold_up_the_others() -> None:
    group = Group()
    bench = Bench(group)
    bench.submit("a1", "a")
    leaving = bench.submit("a2", "a")
    bench.submit("b1", "b")
    leaving.cancel(RequestCancelled())
    bench.finish(group)
    assert group.ids == [["b1"]]


@on_a_loop
def test_by_the_fixed_policy_a_lone_request_waits_for_less_than_a_second_too() -> None:
    group = Group()
    bench = Bench(group, batching_policy="fixed", batch_size=4, max_batch_delay=500)
    bench.submit("a1", "a")
    assert (group.ids, bench.dispatcher.waiting) == ([], 1)
    for name in "bcd":
        bench.submit(name, name)
    assert group.ids == [["a1", "b", "c", "d"]]
    bench.dispatcher.close()


@on_a_loop
def test_sequences_stay_where_their_state_is() -> None:
    """Even while another group is idle."""
    first, second = Group(), Group()
    bench = Bench(first, second)
    bench.submit("a1", "a")
    bench.submit("b1", "b")
    assert (first.ids, second.ids) == ([["a1"]], [["b1"]])
    bench.finish(second)
    bench.submit("a2", "a")
    assert (first.ids, second.ids) == ([["a1"]], [])
    bench.submit("c1", "c")
    assert second.ids == [["c1"]], "a new one does not wait for a busy group"
    bench.finish(first)
    assert first.ids == [["a2"]]


@on_a_loop
def test_new_sequences_go_to_the_group_with_the_fewest() -> None:
    first, second = Group(), Group()
    bench = Bench(first, second)
    for name in ("a", "b", "c", "d"):
        bench.submit(name, name)
        bench.finish(first if first.batches else second)
        bench.submit(name + "2", name)
        bench.finish(first if first.batches else second)
    held = [sequence.group for sequence in bench.dispatcher.sequences.open]
    assert [held.count(group) for group in (first, second)] == [2, 2]


@on_a_loop
def test_a_batch_is_of_one_kind() -> None:
    group = Group()
    bench = Bench(group)
    bench.submit("x", "x")
    bench.submit("a", "a", kind=EXPLAIN)
    bench.submit("b", "b")
    bench.submit("c", "c", kind=EXPLAIN)
    bench.finish(group)
    assert group.ids == [["a", "c"]]
    bench.finish(group)
    assert group.ids == [["b"]]


@on_a_loop
def test_a_description_belongs_to_no_sequence() -> None:
    group = Group()
    bench = Bench(group, max_num_sequence=1)
    bench.submit("a", "a")
    bench.submit("describe", kind=DESCRIBE)
    bench.finish(group)
    assert group.ids == [["describe"]]
    assert len(bench.dispatcher.sequences.open) == 1


@on_a_loop
def test_the_server_names_what_the_client_does_not() -> None:
    group = Group()
    bench = Bench(group)
    for job in (bench.submit("n"), bench.submit("e", "")):
        (name, id), start = job.headers
        assert (name, id[:7], len(id), start) == ("Seq", "ts-seq-", 43, ("Seq-Start", "true"))
    assert len(bench.dispatcher.sequences.open) == 2


@on_a_loop
def test_limits() -> None:
    group = Group()
    bench = Bench(group, max_num_sequence=2, max_sequence_job_queue_size=1)
    for name in ("a", "a", "b"):
        bench.submit(name, name)
    bench.refused("a", "a", match="sequence a is full: maxSequenceJobQueueSize is 1")
    bench.refused("c", "c", match="2 sequences are open: maxNumSequence is 2")


@on_a_loop
def test_fixed_batches_wait_for_other_sequences() -> None:
    group = Group(batch_size=2)
    bench = Bench(group, batching_policy="fixed", max_batch_delay=600_000, batch_size=2)
    bench.submit("a1", "a")
    bench.submit("a2", "a")
    assert group.ids == []
    bench.submit("b1", "b")
    assert group.ids == [["a1", "b1"]]
    bench.dispatcher.close()


@on_a_loop
def test_a_stream_of_a_sequence_shares_no_batch() -> None:
    group = Group()
    bench = Bench(group)
    bench.submit("a1", "a")
    for name in ("b1", "c1"):
        bench.submit(name, name[0], kind=STREAM)
    bench.submit("d1", "d")
    for batch in (["b1"], ["c1"], ["d1"]):
        bench.finish(group)
        assert group.ids == [batch]


# -- the end --


@on_a_loop
def test_a_request_ends_its_sequence_when_it_is_answered() -> None:
    group = Group()
    bench = Bench(group)
    bench.submit("a1", "a")
    bench.submit("a2", "a", "Seq-End")
    bench.refused("a3", "a", match="sequence a is closed: a request ends it")
    bench.finish(group)
    assert group.ids == [["a2"]]
    bench.finish(group)
    bench.refused("a3", "a", match="sequence a has ended: a request ended it; begin it anew with the header Seq-Start")
    bench.submit("a3", "a", "Seq-Start")
    assert group.ids == [["a3"]]


@on_a_loop
def test_the_end_counts_before_the_batch_of_others_is_over() -> None:
    """The client has its answer and begins anew, while its neighbours' answers are still to come."""
    group = Group()
    bench = Bench(group)
    bench.submit("x", "x")
    last = bench.submit("a", "a", "Seq-End")
    bench.submit("b", "b")
    bench.finish(group)
    last.finish(200)
    group.batches[0].remove(last)
    bench.submit("again", "a", "Seq-Start")
    assert bench.dispatcher.waiting == 1


@on_a_loop
def test_a_reply_ends_sequences() -> None:
    group = Group()
    bench = Bench(group)
    a1 = bench.submit("a1", "a")
    b1, sink = bench.submit("b1", "b"), a1.sink
    sink.start(200, "", [("seq-END", " b ; unknown"), ("x", "y")])
    assert sink_of_inner(a1) == [200]
    assert "sequence b has ended: the handler ended it" in inner(b1).message
    bench.refused("b2", "b", match="the handler ended it")
    a2 = bench.submit("a2", "a")
    sink.start(200, "", [("Seq-End", "True")])
    assert "sequence a has ended: the handler ended it" in inner(a2).message
    assert not a1.done


@pytest.mark.parametrize("config", [{"sequence_max_idle_msec": 1}, {"sequence_timeout_msec": 1}])
def test_time_ends_a_sequence(config: dict[str, Any]) -> None:
    @on_a_loop
    async def test() -> None:
        group = Group()
        bench = Bench(group, **config)
        bench.submit("a1", "a")
        bench.finish(group)
        await until_idle(bench)
        bench.refused("a2", "a", match="sequence a has ended: it ")

    test()


@on_a_loop
async def test_no_sequence_is_idle_while_it_runs_or_waits() -> None:
    group = Group()
    bench = Bench(group, sequence_max_idle_msec=1)
    bench.submit("a1", "a")
    waits = bench.submit("a2", "a")
    await asyncio.sleep(0.02)
    bench.finish(group)
    await asyncio.sleep(0.02)
    assert not bench.dispatcher.sequences.open.why_ended("a")
    assert not waits.done
    bench.finish(group)
    await until_idle(bench)


@on_a_loop
async def test_an_idle_time_that_was_interrupted_is_forgotten() -> None:
    group = Group()
    bench = Bench(group, sequence_max_idle_msec=20)
    bench.submit("a1", "a")
    bench.finish(group)
    runs = bench.submit("a2", "a")
    await asyncio.sleep(0.06)
    assert not bench.dispatcher.sequences.open.why_ended("a")
    bench.finish(group)
    assert runs.done
    await until_idle(bench)


@on_a_loop
async def test_a_request_that_leaves_the_queue_lets_its_sequence_rest() -> None:
    bench = Bench(sequence_max_idle_msec=1)
    bench.dispatcher.expecting_workers = True
    bench.submit("a1", "a").cancel()
    await until_idle(bench)
    assert bench.dispatcher.waiting == 0


@on_a_loop
async def test_the_total_time_ends_what_waits_not_what_runs() -> None:
    group = Group()
    bench = Bench(group, sequence_timeout_msec=5)
    runs, waits = bench.submit("a1", "a"), bench.submit("a2", "a")
    await until_idle(bench)
    assert not runs.done
    assert "it is older than sequenceTimeoutMSec (5 ms)" in inner(waits).message
    bench.finish(group)
    assert sink_of_inner(runs) == ["end"]


@on_a_loop
def test_a_group_takes_its_sequences_with_it() -> None:
    first, second = Group(), Group()
    bench = Bench(first, second)
    bench.submit("a1", "a")
    waits = bench.submit("a2", "a")
    bench.submit("b1", "b")
    bench.dispatcher.group_gone(first)
    bench.dispatcher.group_gone(first)
    assert "sequence a has ended: the worker that held its state ended" in inner(waits).message
    bench.refused("a3", "a", match="the worker that held its state ended")
    bench.finish(second)
    bench.submit("b2", "b")
    assert second.ids == [["b2"]]


@on_a_loop
def test_everything_fails() -> None:
    group = Group()
    bench = Bench(group)
    bench.submit("a1", "a")
    waits = bench.submit("a2", "a")
    bench.dispatcher.fail_all(WorkerDied("over"))
    assert inner(waits).message == worker_died("over")
    assert bench.dispatcher.waiting == 0


@on_a_loop
def test_a_request_that_waits_too_long() -> None:
    group = Group()
    bench = Bench(group, response_timeout=1)
    bench.submit("a1", "a")
    waits = bench.submit("a2", "a")
    waits.enqueued -= 5
    assert bench.dispatcher.oldest_age >= 5
    bench.dispatcher.expire()
    assert inner(waits).status == 504


@on_a_loop
def test_not_all_that_ended_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sequences, "REMEMBERED", 2)
    group = Group()
    bench = Bench(group)
    for name in ("a", "b", "c"):
        bench.submit(name, name, "Seq-End")
        bench.finish(group)
    bench.submit("a", "a")
    bench.refused("c", "c", match="a request ended it")


# -- continuous --


@on_a_loop
def test_a_continuous_handler_gets_the_next_request_when_the_one_before_has_spoken() -> None:
    group = Group(slots=4)
    bench = Bench(group)
    first = bench.submit("a1", "a")
    for name in ("a2", "a3"):
        bench.submit(name, "a")
    assert group.ids == [["a1"]]
    first.first_chunk = 1.0
    bench.dispatcher.group_has_room(group)
    assert group.ids == [["a1"], ["a2"]]


@on_a_loop
def test_an_async_handler_gets_them_one_after_the_other() -> None:
    group = Group(slots=4)
    group.continuous = False
    bench = Bench(group)
    first = bench.submit("a1", "a")
    bench.submit("a2", "a")
    bench.submit("b1", "b")
    first.first_chunk = 1.0
    bench.dispatcher.group_has_room(group)
    assert group.ids == [["a1"], ["b1"]]
    bench.finish(group)
    assert group.ids == [["b1"], ["a2"]]


def sink_of_inner(job: Job) -> list[Any]:
    """Events of the job's own sink."""
    return sink_of(_unwrapped(job)).events


def inner(job: Job) -> Any:
    return error_of(_unwrapped(job))


def _unwrapped(job: Job) -> Job:
    job.sink = getattr(job.sink, "_sink", job.sink)
    return job


def handed(bench: Bench, group: Group) -> list[HandedSequence]:
    return bench.dispatcher.sequences.hand_over(group)


def take_over(bench: Bench, group: Group, *given: tuple[HandedSequence, list[Job]]) -> None:
    bench.dispatcher.sequences.take_over(group, given)


@on_a_loop
async def test_another_frontend_goes_on_with_the_sequences_of_a_group() -> None:
    first, second = Group(), Group()
    before = Bench(first, second, sequence_timeout_msec=600_000)
    for id, group in (("a", first), ("b", second)):
        before.submit(f"{id}1", id)
        before.finish(group)
    (one,) = handed(before, first)
    assert (one.id, one.closing, one.running) == ("a", False, [])
    assert one.left is not None
    assert 599 < one.left <= 600
    groups = Group(), Group()
    after = Bench(*groups)
    take_over(after, groups[1], (one, []))
    after.submit("c1", "c")
    after.submit("a2", "a")
    assert [group.ids for group in groups] == [[["c1"]], [["a2"]]]
    before.submit("b2", "b")
    assert second.ids == [["b2"]]


@on_a_loop
async def test_a_request_that_runs_holds_up_the_next_one_of_its_sequence() -> None:
    before_group, group = Group(), Group()
    before, after = Bench(before_group), Bench(group, sequence_max_idle_msec=1)
    job = before.submit("a1", "a")
    job.number = 7
    (one,) = handed(before, before_group)
    assert one.running == [7]
    guest = make_job("guest")
    guest.group = group
    group.batches.append([guest])
    take_over(after, group, (one, [guest]))
    after.submit("a2", "a")
    await asyncio.sleep(0.01)
    assert not after.dispatcher.sequences.open.why_ended("a")
    assert group.ids == [["guest"]]
    after.finish(group)
    assert group.ids == [["a2"]]


@on_a_loop
async def test_the_reply_of_a_request_that_runs_may_end_its_sequence() -> None:
    group = Group()
    after, guest = Bench(group), make_job("guest")
    take_over(after, group, (HandedSequence("a", None, False, [1]), [guest]))
    guest.sink.answer(200, "", [("Seq-End", "true")], b"")
    assert after.dispatcher.sequences.open.why_ended("a") == "the handler ended it"


@on_a_loop
async def test_one_that_a_request_ends_is_closed_there_too() -> None:
    group = Group()
    after = Bench(group)
    guest = make_job("guest")
    guest.group = group
    group.batches.append([guest])
    take_over(after, group, (HandedSequence("a", None, True, [1]), [guest]))
    after.refused("a2", "a", match="is closed: a request ends it")
    after.finish(group)
    assert after.dispatcher.sequences.open.why_ended("a") == "a request ended it"


@on_a_loop
async def test_a_late_request_to_the_frontend_before_begins_and_ends_sequences() -> None:
    """One that it begins has its state in that worker: the next request must go there."""
    groups = Group(), Group()
    after = Bench(*groups)

    def late(name: str, *headers: tuple[str, str]) -> Job:
        guest = make_job(name)
        guest.headers, guest.group = [*headers], groups[1]
        groups[1].batches.append([guest])
        after.dispatcher.sequences.guests_arrived(groups[1], [guest])
        return guest

    late("x1", ("seq", "x"))
    after.submit("x2", "x")
    after.finish(groups[1])
    assert [group.ids for group in groups] == [[], [["x2"]]]
    after.finish(groups[1])
    late("x3", ("seq", "x"), ("Seq-End", "true"))
    after.refused("x4", "x", match="is closed: a request ends it")
    after.finish(groups[1])
    after.refused("x4", "x", match="sequence x has ended: a request ended it")
    late("y1", ("seq", "y")).sink.answer(200, "", [("Seq-End", "true")], b"")
    after.refused("y2", "y", match="sequence y has ended: the handler ended it")


@on_a_loop
async def test_a_late_request_may_come_before_its_sequence() -> None:
    group = Group()
    after, guest = Bench(group), make_job("a2")
    guest.headers, guest.group = [("seq", "a"), ("Seq-End", "true")], group
    group.batches.append([guest])
    after.dispatcher.sequences.guests_arrived(group, [guest])
    take_over(after, group, (HandedSequence("a", None), []))
    after.refused("a3", "a", match="is closed: a request ends it")
    after.finish(group)
    assert after.dispatcher.sequences.open.why_ended("a") == "a request ended it"


@on_a_loop
async def test_one_that_has_left_ends_by_no_time_limit() -> None:
    group = Group()
    bench = Bench(group, sequence_max_idle_msec=1, sequence_timeout_msec=5)
    bench.submit("a1", "a")
    handed(bench, group)
    bench.finish(group)
    await asyncio.sleep(0.02)
    assert not bench.dispatcher.sequences.open.why_ended("a")


@on_a_loop
async def test_one_that_has_ended_is_known_to_the_next_frontend() -> None:
    """Its state is gone there, too: a late request would get a wrong answer."""
    first, group = Group(), Group()
    before, after = Bench(first), Bench(group)
    before.submit("a1", "a", "Seq-End")
    before.finish(first)
    assert before.dispatcher.sequences.open.why_ended("a")
    take_over(after, group, *((one, []) for one in handed(before, first)))
    after.refused("a2", "a", match="sequence a has ended: a request ended it")
    assert len(after.dispatcher.sequences.open) == 0


@on_a_loop
async def test_long_names_leave_room_for_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sequence_jobs, "ROOM", 20)
    group = Group()
    bench = Bench(group, max_num_sequence=9)
    for id in ("x" * 18, "a", "b"):
        bench.submit(f"{id}1", id)
        bench.finish(group)
    assert [one.id for one in handed(bench, group)] == ["a", "b", "x" * 18]
    bench.submit("c1", "c")
    bench.finish(group)
    assert [one.id for one in handed(bench, group)] == ["a", "b", "c"]


@on_a_loop
async def test_after_a_crash_unknown_sequences_may_have_been_open() -> None:
    bench = Bench(Group(), sequence_max_idle_msec=50)
    bench.dispatcher.sequences.open.lose()
    bench.refused(
        "a2", "a", match="the server or its worker was restarted.*begin it anew with the header Seq-Start: true"
    )
    bench.submit("b1", "b", "Seq-Start")
    while bench.dispatcher.sequences.open.why_ended("a"):
        await asyncio.sleep(0.001)
    bench.submit("a3", "a")
