"""A dispatcher whose jobs are routed: each goes to the worker that has its beginning. The groups are fakes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from msx_core.config import ModelConfig, RoutingOptions
from msx_core.service_errors import ServiceUnavailable
from msx_frontend.job import Job
from msx_frontend.job_headers import KeptHeaders
from msx_frontend.metrics import ModelMetrics, ServerMetrics
from msx_frontend.queueing.events import QueueEvents
from msx_frontend.queueing.refusals import Refusals
from msx_frontend.queueing.routing.routed import routed_jobs
from msx_sdk.generation import EMBED, GENERATE, Capabilities
from tests.frontend.jobs import make_job
from tests.frontend.queueing.test_dispatcher import Bench, FakeGroup, on_a_loop

TEXTS = Capabilities(generate=True)
REASONS = ("session", "prefix", "load")


class RoutedBench(Bench):
    def __init__(self, *slots: int, **config: Any) -> None:
        super().__init__(*(FakeGroup(max_concurrent=count) for count in slots), batch_size=1, **config)
        self.server = ServerMetrics()
        self.metrics = ModelMetrics(self.server, "m", "1.0")
        config.pop("events", None)
        settings = ModelConfig(**config)
        self.dispatcher.routed = routed_jobs(settings, TEXTS, self.groups[0], lambda: self.metrics.text)

    def ask(self, name: str, prompt: str, session: str = "", **options: Any) -> str:
        """The group that got it, by its place; "" for none. It is finished at once, if it got one."""
        job = self.begin(name, prompt, session, **options)
        place = "".join(str(n) for n, group in enumerate(self.groups) if group.holds(job))
        for group in self.groups:
            while group.batches:
                self.finish(group)
        return place

    def begin(self, name: str, prompt: str, session: str = "", **options: Any) -> Job:
        job = make_job(name, prompt.encode(), **{"kind": GENERATE, **options})
        job.headers = KeptHeaders([("X-Session-Id", session)] if session else [])
        self.dispatcher.submit(job)
        self.dispatcher.pump()
        return job

    def counted(self) -> list[float]:
        return [self.server.text.routed.labels("m", "1.0", reason).value for reason in REASONS]


def held(groups: Sequence[FakeGroup]) -> list[str]:
    return ["".join(job.id for batch in group.batches for job in batch) for group in groups]


def words(of: str, count: int = 40) -> str:
    return " ".join(f"{of}{n}" for n in range(count))


@on_a_loop
def test_turns_of_a_conversation_go_to_the_worker_that_had_the_first() -> None:
    bench = RoutedBench(4, 4)
    said = {name: words(name) for name in "abcd"}
    first = [bench.ask(name, said[name]) for name in "abcd"]
    assert first == ["0", "1", "0", "1"]
    for turn in range(3):
        for name, place in zip("dbca", "1100", strict=True):
            said[name] += words(f"{name}{turn}")
            assert bench.ask(name, said[name]) == place
    assert bench.counted() == [0, 12, 4]


@on_a_loop
def test_sessions_stick() -> None:
    bench = RoutedBench(4, 4)
    assert [bench.ask("1", "hello", "s1"), bench.ask("2", "hi", "s2")] == ["0", "1"]
    assert [bench.ask("3", "and", "s2"), bench.ask("4", "again", "s2"), bench.ask("5", "so", "s1")] == ["1", "1", "0"]
    assert bench.counted() == [3, 0, 2]


@on_a_loop
def test_jobs_that_come_at_once_are_divided() -> None:
    """Without routing the least busy worker would take all of them."""
    bench = RoutedBench(4, 4)
    for name in "abcdef":
        bench.dispatcher.submit(make_job(name, b"", kind=GENERATE))
    bench.dispatcher.pump()
    assert held(bench.groups) == ["ace", "bdf"]
    assert [group.unsent for group in bench.groups] == [0, 0]


@on_a_loop
def test_the_imbalance_is_bounded() -> None:
    bench = RoutedBench(20, 20, routing=RoutingOptions(max_imbalance=2))
    for name in "abcdefgh":
        bench.begin(name, words("shared"))
    assert held(bench.groups) == ["abcg", "defh"], "what both have is divided by load"


@on_a_loop
def test_a_worker_without_room_holds_nothing_up() -> None:
    bench = RoutedBench(1, 1)
    prompt = words("shared")
    bench.begin("a", prompt)
    bench.begin("b", prompt)
    assert held(bench.groups) == ["a", "b"]
    third = bench.begin("c", prompt)
    assert third.queue is not None
    bench.finish(bench.groups[1])
    assert held(bench.groups) == ["a", "c"]


@on_a_loop
def test_a_worker_that_has_ended_is_forgotten() -> None:
    bench = RoutedBench(4, 4)
    prompt = words("a")
    assert bench.ask("a", prompt, "s") == "0"
    bench.dispatcher.group_gone(bench.groups[0])
    bench.dispatcher.group_ready(bench.groups[0])  # as if it were another one
    assert bench.ask("b", prompt, "s") == "1"
    assert bench.counted() == [0, 0, 2]


@on_a_loop
def test_jobs_that_a_dying_worker_gives_back_go_to_another() -> None:
    bench = RoutedBench(4, 4)
    job = bench.begin("a", words("a"))
    bench.dispatcher.group_gone(bench.groups[0])
    bench.groups[0].batches.clear()
    bench.dispatcher.put_back([job])
    assert held(bench.groups) == ["", "a"]


@on_a_loop
def test_a_cancelled_job_leaves_the_queue() -> None:
    bench = RoutedBench(1, 1)
    bench.begin("a", "")
    bench.begin("b", "")
    third, fourth = bench.begin("c", ""), bench.begin("d", "")
    third.cancel()
    bench.finish(bench.groups[0])
    assert bench.groups[0].holds(fourth)


@on_a_loop
def test_classes_come_first() -> None:
    bench = RoutedBench(1, 1)
    bench.begin("a", "")
    bench.begin("b", "")
    bench.begin("c", "")
    high = make_job("d", b"", kind=GENERATE, headers=KeptHeaders([("x-msx-priority", "high")]))
    bench.dispatcher.submit(high)
    bench.finish(bench.groups[0])
    assert bench.groups[0].holds(high)


@on_a_loop
def test_a_full_queue_and_deadlines_are_as_without() -> None:
    bench = RoutedBench(1, 1, job_queue_size=2)
    for name in "ab":
        bench.begin(name, "")
    late, _ = bench.begin("c", ""), bench.begin("d", "")
    with pytest.raises(ServiceUnavailable, match="the queue is full: jobQueueSize is 2"):
        bench.begin("e", "")
    Refusals("m", "1.0").expire(late)
    assert (late.queue, bench.dispatcher.waiting) == (None, 1)
    bench.finish(bench.groups[1])
    assert held(bench.groups) == ["a", "d"]


@on_a_loop
def test_the_gate_holds_jobs_back() -> None:
    places = [0]
    bench = RoutedBench(4, 4, events=QueueEvents(gate=lambda jobs: places[0]))
    job = bench.begin("a", "")
    assert job.queue is not None
    places[0] = 1
    bench.dispatcher.pump()
    assert bench.groups[0].holds(job)


@on_a_loop
def test_embeddings_are_not_remembered() -> None:
    bench = RoutedBench(4, 4)
    assert [bench.ask(name, words("a"), "s", kind=EMBED) for name in "abc"] == ["0", "1", "0"]
    assert bench.counted() == [0, 0, 0]


@on_a_loop
def test_one_worker_is_not_chosen() -> None:
    bench = RoutedBench(4)
    assert bench.ask("a", words("a"), "s") == "0"
    assert bench.counted() == [0, 0, 0]


@on_a_loop
@pytest.mark.parametrize(("options", "places"), [(RoutingOptions(sessions=False), "0101"), (RoutingOptions(), "0100")])
def test_sessions_may_be_off(options: RoutingOptions, places: str) -> None:
    bench = RoutedBench(4, 4, routing=options)
    asked = [("a", "s"), ("b", ""), ("c", "s"), ("d", "s")]
    assert "".join(bench.ask(prompt, prompt, session) for prompt, session in asked) == places


@on_a_loop
def test_prefixes_may_be_off() -> None:
    bench = RoutedBench(4, 4, routing=RoutingOptions(prefix=False))
    assert [bench.ask(name, words("a")) for name in "abc"] == ["0", "1", "0"]


def test_what_is_routed() -> None:
    group, metrics = FakeGroup(max_concurrent=4), ModelMetrics(ServerMetrics(), "m", "1.0")

    def routed(config: ModelConfig, offered: Capabilities | None = TEXTS, of: FakeGroup = group) -> bool:
        return routed_jobs(config, offered, of, lambda: metrics.text) is not None

    assert routed(ModelConfig())
    assert not routed(ModelConfig(routing=False))
    assert not routed(ModelConfig(), None)
    assert not routed(ModelConfig(), Capabilities(embed=True))
    assert not routed(ModelConfig(), of=FakeGroup())
    assert not routed(ModelConfig(sequence_batching=True, sequence_max_idle_msec=1000))
