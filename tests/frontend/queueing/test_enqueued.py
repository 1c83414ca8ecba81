"""The limit of the whole server for MindSpore Serving's requests."""

from __future__ import annotations

from pathlib import Path

import pytest

from msx_core.service_errors import Overloaded, ServiceUnavailable
from msx_frontend.config import ServerConfig
from msx_frontend.job import Field
from msx_frontend.queueing.enqueued import EnqueuedRequests
from msx_frontend.queueing.instances import InstanceRequest
from tests.frontend.harness import Harness, open_harness
from tests.frontend.queueing.instance_requests import Answers
from tests.loops import run
from tests.phrases import no_worker


def test_the_limit_can_be_changed_and_holds_for_those_to_come() -> None:
    enqueued = EnqueuedRequests(2)
    enqueued.enter()
    enqueued.enter()
    with pytest.raises(Overloaded, match=r"^Serving Error: enqueued requests count exceeds the limit 2$"):
        enqueued.enter()
    enqueued.limit = 1
    enqueued.leave()
    with pytest.raises(Overloaded, match=r"exceeds the limit 1$"):
        enqueued.enter()
    enqueued.leave()
    enqueued.enter()


def test_the_limit_is_mindspore_servings_unless_the_key_says_another() -> None:
    assert ServerConfig().max_enqueued_requests == 10_000


def test_a_request_is_counted_until_it_is_answered_or_refused(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        enqueued, registry = harness.registry.enqueued, harness.registry
        await harness.register("m", initial_workers=0)
        with pytest.raises(ServiceUnavailable, match=no_worker("m")):
            registry.submit_instances(of_two(enqueued))
        assert enqueued.count == 0
        registry.find("m").queue.dispatcher.expecting_workers = True
        request = of_two(enqueued)
        registry.submit_instances(request)
        assert enqueued.count == 1
        enqueued.limit = 1
        with pytest.raises(Overloaded, match="exceeds the limit 1"):
            registry.submit_instances(of_two(enqueued))
        refused = of_two(enqueued)
        with pytest.raises(Overloaded):
            registry.submit_instances(refused)
        refused.cancel()  # its client leaves
        assert enqueued.count == 1
        request.cancel()
        assert (enqueued.count, request.done) == (0, True)

    async def call() -> None:
        async with open_harness(tmp_path) as harness:
            await test(harness)

    run(call())


def of_two(enqueued: EnqueuedRequests) -> InstanceRequest:
    fields = [[Field("x", None, b"1")], [Field("x", None, b"2")]]
    return InstanceRequest("r", "m", None, fields, [], Answers(), kind="predict", enqueued=enqueued)
