"""Bounds between the nodes of a graph."""

from __future__ import annotations

import random
from collections import deque

import pytest

from msx_frontend.graphs.edges import Bound, entered_at
from msx_frontend.graphs.execution import Execution
from msx_frontend.graphs.graph import STAGES, Graph
from msx_frontend.graphs.running import Running
from msx_frontend.graphs.step import Step
from msx_frontend.job import Field, Job
from tests.frontend.jobs import RecordingSink, sink_of

DIAMOND = {"a": [], "b": ["a"], "c": ["a"], "d": ["b", "c"]}


def test_a_chain_takes_one_place_at_a_time() -> None:
    assert entered_at({"a": [], "b": ["a"], "c": ["b"]}) == {"a": [("a", "b")], "b": [("b", "c")], "c": []}


def test_a_fork_takes_all_up_to_the_join_at_once() -> None:
    assert entered_at({**DIAMOND, "e": ["d"]}) == {
        "a": [("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")],
        "b": [],
        "c": [],
        "d": [("d", "e")],
        "e": [],
    }


def test_a_fork_within_a_fork_belongs_to_the_outer_one() -> None:
    graph = {"a": [], "b": ["a"], "c": ["a"], "x": ["b"], "y": ["b"], "d": ["x", "y", "c"], "e": ["d"]}
    found = entered_at(graph)
    assert len(found["a"]) == 7
    assert all(found[name] == [] for name in "bcxy")
    assert found["d"] == [("d", "e")]


class Workers:
    """A stage with one worker: `step` lets it take or answer one request."""

    def __init__(self) -> None:
        self.waiting: deque[Job] = deque()
        self.runs: Job | None = None
        self.woken = 0

    def submit(self, job: Job) -> None:
        self.waiting.append(job)

    pass_on = submit

    def refused(self, status: int) -> None:
        raise AssertionError

    def wake(self) -> None:
        self.woken += 1

    def step(self) -> bool:
        if self.runs is not None:
            job, self.runs = self.runs, None
            job.answer(200, "", [], b"".join(field.data for field in job.fields))
            return True
        while self.waiting and self.waiting[0].done:
            self.waiting.popleft()
        if self.waiting:
            sink = self.waiting[0].sink
            assert isinstance(sink, Step)
            if sink.enter():
                self.runs = self.waiting.popleft()
                return True
        return False


def ask(graph: Graph, running: Running, body: bytes) -> Job:
    job = Job(body.decode(), "m", None, [Field("body", None, body)], [], RecordingSink())
    Execution(graph, job, running, "method:").begin()
    return job


@pytest.mark.parametrize("capacity", [1, 2])
@pytest.mark.parametrize("seed", range(20))
def test_requests_always_go_on(seed: int, capacity: int) -> None:
    """Whichever stage is first, and whoever leaves: all are answered, and all places are free at the end."""
    chance = random.Random(seed)
    shape = {**DIAMOND, "e": ["d"], "x": ["e"], "y": ["e"], "z": ["x", "y"]}
    workers = {name: Workers() for name in shape}
    targets = {name: (name, one) for name, one in workers.items()}
    graphs = [
        Graph(before, targets, STAGES, bounds=dict.fromkeys(shape, Bound(capacity)))
        for before in (shape, {"b": [], "d": ["b"], "e": ["d"]})
    ]
    running = Running()
    jobs = [ask(graphs[n % 2], running, b"%d" % n) for n in range(40)]
    for job in chance.sample(jobs, 5):
        if chance.random() < 0.5:
            job.cancel()
    names = list(shape)
    while True:
        chance.shuffle(names)
        gone_on = [workers[name].step() for name in names]
        if not any(gone_on):
            break
        if chance.random() < 0.1:
            chance.choice(jobs).cancel()
    assert not running
    assert all(job.done for job in jobs)
    for job in jobs[1::2]:
        assert job.cancelled or sink_of(job).events == [200, job.fields[0].data, "end"]
    assert all(edge.taken == 0 for graph in graphs for node in graph.nodes for edge in node.enters)


def test_the_stage_before_pauses_and_is_woken() -> None:
    a, b = Workers(), Workers()
    graph = Graph({"a": [], "b": ["a"]}, {"a": ("a", a), "b": ("b", b)}, STAGES, bounds=dict.fromkeys("ab", Bound(1)))
    running = Running()
    first, second = (ask(graph, running, body) for body in (b"1", b"2"))
    assert a.step()
    assert a.step()
    assert not a.step()
    assert (b.step(), a.woken) == (True, 0)
    assert (b.step(), a.woken, first.done, second.done) == (True, 1, True, False)
    assert a.step()
