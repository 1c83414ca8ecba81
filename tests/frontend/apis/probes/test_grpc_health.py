import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from grpc import StatusCode

from msx_frontend.apis.probes import grpc_health as health
from msx_frontend.apis.torchserve.grpc.inference import SERVICE as INFERENCE
from msx_net.grpc.messages import message_class
from tests.frontend.net.grpc.harness import Model, Served, failure, serving

Request = message_class("grpc.health.v1.HealthCheckRequest")
Response = message_class("grpc.health.v1.HealthCheckResponse")


def with_server(test: Callable[[Served], Awaitable[None]]) -> None:
    async def main() -> None:
        async with serving() as served:
            await asyncio.wait_for(test(served), 120)

    asyncio.run(main())


def check(served: Served, service: str) -> Any:
    path = f"/{health.SERVICE}/Check"
    return served.channel.unary_unary(path, Request.SerializeToString, Response.FromString)(Request(service=service))


def watch(served: Served, service: str) -> Any:
    path = f"/{health.SERVICE}/Watch"
    return served.channel.unary_stream(path, Request.SerializeToString, Response.FromString)(Request(service=service))


def test_the_whole_server_follows_the_readiness_probe() -> None:
    async def test(served: Served) -> None:
        for service in ("", INFERENCE):
            served.health.is_ready = True
            assert (await check(served, service)).status == Response.SERVING
            served.health.is_ready = False
            assert (await check(served, service)).status == Response.NOT_SERVING

    with_server(test)


def test_each_model_has_a_status_of_its_own() -> None:
    async def test(served: Served) -> None:
        served.registry.models = {"up": Model(True), "down": Model(False)}
        assert (await check(served, "up")).status == Response.SERVING
        assert (await check(served, "down")).status == Response.NOT_SERVING

    with_server(test)


def test_an_unknown_model() -> None:
    async def test(served: Served) -> None:
        error = await failure(check(served, "nobody"))
        assert error.code() is StatusCode.NOT_FOUND
        assert "Model not found: nobody" in (error.details() or "")

    with_server(test)


def test_a_watcher_hears_every_change_and_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "LOOK", 0.01)

    async def test(served: Served) -> None:
        changes = aiter(watch(served, "m"))
        assert (await anext(changes)).status == Response.SERVICE_UNKNOWN
        served.registry.models["m"] = Model(False)
        assert (await anext(changes)).status == Response.NOT_SERVING
        served.registry.models["m"].serving = True
        assert (await anext(changes)).status == Response.SERVING
        stop = asyncio.ensure_future(served.server.stop(1000))
        assert (await anext(changes)).status == Response.NOT_SERVING
        with pytest.raises(StopAsyncIteration):
            await anext(changes)
        await stop

    with_server(test)
