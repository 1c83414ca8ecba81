"""Requests to a model that nobody has loaded yet, and that the first request loads."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import patch

import pytest

from msx_core.service_errors import Overloaded, ServiceError, ServiceUnavailable
from msx_frontend.generation.directory import Directory
from msx_frontend.generation.errors import FirstLoading
from msx_frontend.models.autoscaling import timer
from msx_frontend.models.versions.first_load import FirstLoad
from msx_sdk.generation import GENERATE, Capabilities
from tests.frontend.generation.speaker import Speaker, words
from tests.frontend.harness import FakeGroup, Harness, in_harness, until
from tests.loops import run

CHAT = {"model": "m", "messages": [{"role": "user", "content": "x"}]}
BODIES = {"/v1/chat/completions": CHAT, "/generate": {"inputs": "x"}, "/v2/models/m/generate": {"text_input": "x"}}
TEXT = Capabilities(generate=True, chat=True)


def sleeping() -> Speaker:
    speaker = Speaker([words("a")], models={"m": None})
    speaker.versions["m"].workers.on_demand = True
    return speaker


@pytest.mark.parametrize("path", BODIES)
def test_a_request_waits_for_what_the_model_offers(path: str) -> None:
    async def test() -> None:
        speaker = sleeping()
        exchange = speaker.begin(path, BODIES[path])
        version = speaker.versions["m"]
        await until(lambda: len(version.first_load) == 1)
        assert speaker.jobs == []
        version.schema.capabilities = TEXT
        version.first_load.loaded()
        assert (await exchange.finish()).status == 200

    run(test())


def test_what_the_model_does_not_offer_is_said_then() -> None:
    async def test() -> None:
        speaker = sleeping()
        exchange = speaker.begin("/v1/chat/completions", CHAT)
        version = speaker.versions["m"]
        await until(lambda: len(version.first_load) == 1)
        version.schema.capabilities = Capabilities(embed=True)
        version.first_load.loaded()
        assert (await exchange.finish()).status == 400

    run(test())


def test_a_load_that_fails_is_said_in_the_families_shape() -> None:
    async def test() -> None:
        speaker = sleeping()
        exchange = speaker.begin("/v1/chat/completions", CHAT)
        version = speaker.versions["m"]
        await until(lambda: len(version.first_load) == 1)
        version.first_load.failed(ServiceUnavailable("no weights"))
        reply = await exchange.finish()
        assert (reply.status, reply.json["error"]["message"]) == (503, "no weights")
        assert len(version.first_load) == 0

    run(test())


def test_its_places_and_its_time_are_bounded() -> None:
    async def test() -> None:
        waiting, told, gone = FirstLoad("m", 2, 0.001), list[ServiceError](), list[bool]()
        first = waiting.wait(lambda: gone.append(True), told.append)
        waiting.wait(lambda: gone.append(True), told.append)
        with pytest.raises(Overloaded, match="jobQueueSize is 2"):
            waiting.wait(lambda: None, told.append)
        first.leave()
        first.leave()
        await until(lambda: told)
        assert "waited for 0.001 s, its responseTimeout, for model m to load" in told[0].message
        waiting.loaded()
        assert (len(told), gone, len(waiting)) == (1, [], 0)

    run(test())


def test_the_request_starts_the_worker(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        FakeGroup.offers["m"] = TEXT
        await harness.register("m", config="minWorkers: 0\nautoscaling: true\n")
        directory, version, told = Directory(harness.registry), harness.registry.find("m"), list[object]()
        for name in ("m", None):
            with pytest.raises(FirstLoading):
                directory.find(name, GENERATE)
        with pytest.raises(FirstLoading):
            directory.find_for_tgi(None, GENERATE)
        assert version.workers.all == []
        version.queue.wait_for_load(lambda: told.append("go"), told.append)
        await until(lambda: told)
        assert told == ["go"]
        assert directory.find(None, GENERATE) is version

    async def fails(harness: Harness) -> None:
        FakeGroup.failing.add("m")
        await harness.register("m", config="minWorkers: 0\nautoscaling: true\n")
        version, told = harness.registry.find("m"), list[ServiceError]()
        version.queue.wait_for_load(lambda: None, told.append)
        await until(lambda: told)
        assert "no weights" in told[0].message
        await until(lambda: version.workers.all == [])

    with patch.object(timer, "INTERVAL", 1e6):
        (tmp_path / "a").mkdir()
        (tmp_path / "b").mkdir()
        in_harness(tmp_path / "a", test)
        in_harness(tmp_path / "b", fails)
