"""Large values take room on the edges of a graph."""

from __future__ import annotations

from msx_frontend.graphs.edges import Bound, Edge, take
from msx_frontend.graphs.execution import Execution
from msx_frontend.graphs.graph import STAGES, Graph
from msx_frontend.graphs.running import Running
from msx_frontend.job import Job
from tests.frontend.jobs import make_job

LARGE = bytes(100_000)


class Target:
    """A stage without workers: the test answers what it is given."""

    def __init__(self) -> None:
        self.jobs: list[Job] = []
        self.woken = 0

    def submit(self, job: Job) -> None:
        self.jobs.append(job)

    pass_on = submit

    def refused(self, status: int) -> None: ...

    def wake(self) -> None:
        self.woken += 1

    def enters(self) -> bool:
        """Whether its oldest job may go to a worker."""
        return bool(self.jobs[0].sink.enter())  # type: ignore[attr-defined]

    def answer(self, data: bytes) -> None:
        self.jobs.pop(0).answer(200, "", [], data)


def test_an_edge_is_full_of_bytes_or_of_messages() -> None:
    woken: list[bool] = []
    edge = Edge(Bound(2, 1000), 0, lambda: woken.append(True))
    assert take([edge])
    edge.size += 1000
    assert not take([edge])
    edge.release(1000)
    assert (edge.taken, edge.size, woken) == (0, 0, [True])
    assert take([edge])
    assert take([edge])
    assert not take([edge])


def test_a_large_value_that_waits_pauses_the_stage_before() -> None:
    first, last = Target(), Target()
    bound = Bound(10, len(LARGE))
    targets = {"first": ("m/first", first), "last": ("m/last", last)}
    graph = Graph({"first": (), "last": ("first",)}, targets, STAGES, bounds={"first": bound, "last": bound})
    running = Running()
    for data in (b"small", LARGE):
        Execution(graph, make_job(), running, "method:").begin()
        assert first.enters()
        first.answer(data)
    Execution(graph, make_job(), running, "method:").begin()
    assert not first.enters()
    last.answer(b"ok")
    assert first.woken == 1
    assert not first.enters()
    last.answer(b"ok")
    assert first.enters()
    (edge,) = graph.start.enters
    assert (edge.taken, edge.size) == (1, 0)


def test_a_request_that_ends_early_takes_no_room_any_more() -> None:
    first, last = Target(), Target()
    targets = {"first": ("m/first", first), "last": ("m/last", last)}
    graph = Graph({"first": (), "last": ("first",)}, targets, STAGES, bounds={"first": Bound(1), "last": Bound(1)})
    job = make_job()
    Execution(graph, job, Running(), "method:").begin()
    assert first.enters()
    first.answer(LARGE)
    (edge,) = graph.start.enters
    assert (edge.taken, edge.size) == (1, len(LARGE))
    job.cancel()
    assert (edge.taken, edge.size) == (0, 0)
