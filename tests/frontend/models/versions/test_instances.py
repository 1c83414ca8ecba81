"""Requests with instances through registry, version, queue and groups."""

from __future__ import annotations

from pathlib import Path

from msx_core.methods import MethodInfo
from msx_core.service_errors import WorkerDied
from msx_frontend.models.describe import describe
from msx_frontend.queueing.instances import InstanceRequest
from msx_protocol import CompleteReplies
from tests.frontend.harness import FakeGroup, Harness, in_harness
from tests.frontend.jobs import sink_of
from tests.frontend.queueing.instance_requests import answers_of, make_request
from tests.prometheus import samples


def submit(harness: Harness, count: int, **options: object) -> InstanceRequest:
    request = make_request("a", count, **options)
    harness.registry.submit_instances(request)
    harness.registry.find("m").queue.dispatcher.pump()
    return request


def answer(group: FakeGroup) -> None:
    """All that the worker has, in one frame."""
    numbers = list(group.runner.in_flight.open)
    bodies = [job.fields[0].data for job in group.jobs]
    group.received(0, CompleteReplies(numbers, list(map(len, bodies)), 200, "", []), b"".join(bodies))


def test_one_batch_of_instances_and_others_is_answered_and_counted_by_requests(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        await harness.register("m", config="batchSize: 8\nmaxBatchDelay: 0")
        (group,) = harness.groups()
        version = harness.registry.find("m")
        version.queue.dispatcher.policy.wait = lambda *args: 0.0  # type: ignore[method-assign]
        request = make_request("a", 3)
        harness.registry.submit_instances(request)
        job = harness.submit(body=b"plain")
        assert [one.id for one in group.jobs] == ["a", "j", "a-1", "a-2"]
        assert version.figures.gauges()["msx_requests_in_flight"] == 4
        answer(group)
        assert answers_of(request).bodies == [b"0", b"1", b"2"]
        assert sink_of(job).events == [200, b"plain", "end"]
        found = samples((await harness.metrics.expose()).decode())
        counted = [value for name, labels, value in found if name == "msx_requests_total" and labels["code"] == "200"]
        assert counted == [2]
        version.metrics._with_worker = 1000
        submit(harness, 2)
        answer(group)
        assert version.metrics._with_worker < 1000  # of this batch, not of an older one

    in_harness(tmp_path, test)


def test_a_group_that_dies_returns_what_it_had_not_begun(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        await harness.register("m", config="batchSize: 2\nmaxBatchDelay: 0")
        (group,) = harness.groups()
        version = harness.registry.find("m")
        for _ in range(50):
            version.queue.dispatcher.policy.finished(2, 0.0001)
        request = submit(harness, 30)
        assert len(group.jobs) == 22
        gauges = version.figures.gauges()
        assert (gauges["msx_queue_depth"], gauges["msx_queue_instances"]) == (1, 8)
        version.queue.dispatcher.group_gone(group.runner)
        group.runner.close(WorkerDied("It ended."))
        assert version.queue.dispatcher.queue.instances == 28
        assert not request.done
        request.cancel()
        assert version.queue.dispatcher.queue.instances == 0

    in_harness(tmp_path, test)


def test_the_longest_time_of_a_request_is_the_yamls(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        await harness.register("m", config="clientTimeoutInMills: 5000")
        request = submit(harness, 3)
        assert request.deadline == request.enqueued + 5
        request.cancel()

    in_harness(tmp_path, test)


def test_a_servable_has_more_places(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        await harness.register("m", handler="servable")
        await harness.register("n", handler="servable", config="jobQueueSize: 7")
        places = [harness.registry.find(name).queue.dispatcher.queue.capacity for name in "mn"]
        assert places == [10_000, 7]

    in_harness(tmp_path, test)


def test_describe_lists_methods(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        await harness.register("m")
        version = harness.registry.find("m")
        assert "methods" not in describe(version)
        version.schema.methods = (MethodInfo(name="top", summary="The best"),)
        assert describe(version)["methods"] == [{"name": "top", "summary": "The best"}]

    in_harness(tmp_path, test)
