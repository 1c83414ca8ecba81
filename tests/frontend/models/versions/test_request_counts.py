"""The gauges that a gateway's endpoint picker reads: requests that wait and run, and the use of the KV cache."""

from __future__ import annotations

from pathlib import Path

from msx_frontend.graphs.edges import Bound
from msx_frontend.graphs.execution import Execution
from msx_frontend.graphs.graph import STAGES, Graph
from msx_frontend.graphs.running import Running
from msx_frontend.job import Field, Job
from msx_frontend.models.registry import Registry
from msx_frontend.workers import group_end
from msx_protocol import MetricSample
from tests.frontend.harness import FakeGroup, Harness, in_harness
from tests.frontend.jobs import RecordingSink
from tests.frontend.queueing.instance_requests import make_request
from tests.prometheus import samples

QUEUED, RUNNING, CACHE = "msx_requests_queued", "msx_requests_running", "msx_kv_cache_utilization"


def counts(registry: Registry, model: str = "m") -> tuple[float, float]:
    gauges = registry.find(model).figures.gauges()
    return gauges[QUEUED], gauges[RUNNING]


async def exposed(harness: Harness, name: str) -> dict[str, float]:
    """By model, for the figures have one series each."""
    found = samples((await harness.metrics.expose()).decode())
    return {labels["model"]: value for one, labels, value in found if one == name}


def tell(group: FakeGroup, **figures: float) -> None:
    """The engine of a worker tells its figures, as it does once a second."""
    told = [MetricSample(f"msx_llm_{name}", "gauge", "", value, []) for name, value in figures.items()]
    group._events.samples_arrived(group, told)


def test_a_model_has_its_series_from_the_registration_to_its_end(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        await harness.register("m", initial_workers=0)
        for name in (QUEUED, RUNNING, CACHE):
            assert await exposed(harness, name) == {"m": 0}
        await harness.management.unregister("m", None)
        for name in (QUEUED, RUNNING, CACHE):
            assert await exposed(harness, name) == {}

    in_harness(tmp_path, test)


def test_what_is_sent_ahead_to_a_busy_worker_is_queued(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        await harness.register("m", config="batchSize: 2\nmaxBatchDelay: 0", initial_workers=2)
        version = harness.registry.find("m")
        for _ in range(50):
            version.queue.dispatcher.policy.finished(2, 0.002)
        for _ in range(20):
            harness.submit()
        held = sum(len(group.jobs) for group in harness.groups())
        running = sum(group.runner.in_flight.batches[0].size for group in harness.groups())
        assert held > running, "some are sent ahead"
        assert counts(harness.registry) == (20 - running, running)
        assert version.figures.gauges()["msx_requests_in_flight"] == held

    in_harness(tmp_path, test)


def test_a_request_with_instances_is_one(tmp_path: Path) -> None:
    """Also where some of them run, others are sent ahead, and others wait in the server's queue."""

    async def test(harness: Harness) -> None:
        await harness.register("m", config="batchSize: 2\nmaxBatchDelay: 0")
        version = harness.registry.find("m")
        for _ in range(50):
            version.queue.dispatcher.policy.finished(2, 0.0001)
        for count in (30, 5):
            harness.registry.submit_instances(make_request("a", count))
        version.queue.dispatcher.pump()
        (group,) = harness.groups()
        assert version.queue.dispatcher.queue.instances
        assert len(group.jobs) > 2
        assert sum(counts(harness.registry)) == 2
        assert counts(harness.registry)[1] >= 1

    in_harness(tmp_path, test)


def test_texts_that_wait_in_an_engine_are_queued_and_caches_are_summed_over_workers(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        await harness.register("m", initial_workers=2)
        one, two = harness.groups()
        for group in (one, two):
            group.runner.is_async = group.runner.in_flight.at_once = True
            group.runner._slots = 4
        for _ in range(8):
            harness.submit()
        assert counts(harness.registry) == (0, 8)
        tell(one, waiting=3, blocks_used=10, blocks_total=40)
        tell(two, waiting=9, blocks_used=30, blocks_total=40)
        assert counts(harness.registry) == (7, 1), "a worker has no more waiting than it was given"
        assert await exposed(harness, CACHE) == {"m": 0.5}
        two.end(group_end.exited(0, 1, -9, ""))
        assert await exposed(harness, CACHE) == {"m": 0.25}, "what a worker told goes with it"

    in_harness(tmp_path, test)


class Stage:
    def __init__(self) -> None:
        self.jobs: list[Job] = []

    def submit(self, job: Job) -> None:
        self.jobs.append(job)

    pass_on = submit

    def refused(self, status: int) -> None:
        raise AssertionError

    def wake(self) -> None:
        return None


def test_a_request_runs_from_its_first_stage_on() -> None:
    a, b = Stage(), Stage()
    graph, running = (
        Graph({"a": [], "b": ["a"]}, {"a": ("a", a), "b": ("b", b)}, STAGES, bounds=dict.fromkeys("ab", Bound(1))),
        Running(),
    )
    Execution(graph, Job("1", "m", None, [Field("body", None, b"x")], [], RecordingSink()), running, "method:").begin()
    (execution,) = running
    assert not execution.begun
    a.jobs[0].started = 1.0
    assert execution.begun
    a.jobs[0].answer(200, "", [], b"y")
    assert (len(b.jobs), b.jobs[0].started) == (1, 0)
    assert execution.begun, "it waits for its second stage"
