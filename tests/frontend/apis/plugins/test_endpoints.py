"""Calls of plugins' endpoints: none holds up the server or ends it."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable
from typing import Any, cast

import pytest

from msx_core.service_errors import DeadlineExceeded, HandlerFailed, MethodNotAllowed, Overloaded, ServiceError
from msx_frontend.apis.plugins.endpoints import MOST_CALLS, PluginEndpoint, make_endpoint
from msx_frontend.installed_plugins import Plugin
from msx_sdk.plugins import Endpoint, EndpointRequest, EndpointResponse, PredictionError
from msx_sdk.request import Headers
from tests.loops import run


def made(get: Callable[[Any, EndpointRequest], Any], limit: float = 30.0) -> PluginEndpoint:
    kind = type("It", (Endpoint,), {"path": "it", "do_get": get})
    return make_endpoint(Plugin("it", "it (m:It of p 1.0)", kind), cast(Any, None), limit)


def request(method: str = "GET") -> EndpointRequest:
    return EndpointRequest("id", method, "", {}, Headers(), b"")


def answer(endpoint: PluginEndpoint, method: str = "GET") -> EndpointResponse:
    return run(endpoint.answer(request(method)))


def test_a_body_is_a_response() -> None:
    assert answer(made(lambda self, request: {"a": 1})) == EndpointResponse({"a": 1})


def test_head_is_get_and_what_is_not_overridden_is_not_there() -> None:
    endpoint = made(lambda self, request: b"x")
    assert endpoint.methods == ["get"]
    assert answer(endpoint, "HEAD").body == b"x"
    for method in ("POST", "OPTIONS", "TRACE"):
        with pytest.raises(MethodNotAllowed):
            answer(endpoint, method)


def test_async_methods_run_on_the_loop_and_others_do_not() -> None:
    async def on_the_loop(self: Endpoint, request: EndpointRequest) -> str:
        return threading.current_thread().name

    assert answer(made(on_the_loop)).body == threading.current_thread().name
    assert answer(made(lambda self, request: threading.current_thread().name)).body == "plugin"


async def _exits(self: Endpoint, request: EndpointRequest) -> None:
    sys.exit("bye")


def _stops(self: Endpoint, request: EndpointRequest) -> None:
    raise StopIteration(1)


def _interrupts(self: Endpoint, request: EndpointRequest) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("get", "said"),
    [
        (_interrupts, "KeyboardInterrupt"),
        (_exits, "it called sys.exit('bye')"),
        (lambda self, request: sys.exit(3), "it called sys.exit(3)"),
        (lambda self, request: 1 // 0, "ZeroDivisionError: "),
        (_stops, "RuntimeError: StopIteration(1)"),
    ],
)
def test_what_it_raises_names_it(get: Any, said: str) -> None:
    with pytest.raises(ServiceError) as raised:
        answer(made(get))
    assert (raised.value.status, raised.value.type) == (500, "InternalServerException")
    assert raised.value.message.startswith(f"The plugin it (m:It of p 1.0) failed: {said}")


def test_what_it_chooses() -> None:
    def refuse(self: Endpoint, request: EndpointRequest) -> None:
        raise PredictionError(418, "a teapot")

    with pytest.raises(HandlerFailed) as raised:
        answer(made(refuse))
    assert (raised.value.status, raised.value.message) == (418, "a teapot")


def test_one_that_hangs() -> None:
    """Its client is told; its thread counts until it ends."""
    go = threading.Event()
    endpoint = made(lambda self, request: go.wait(30), limit=0.001)

    async def call() -> None:
        for _ in range(MOST_CALLS):
            with pytest.raises(DeadlineExceeded, match=r"within default_response_timeout \(0\.001 s\)"):
                await endpoint.answer(request())
        with pytest.raises(Overloaded, match=f"is busy with {MOST_CALLS} calls"):
            await endpoint.answer(request())
        go.set()
        while endpoint.running:
            await asyncio.sleep(0.001)
        endpoint.limit = 30.0
        assert (await endpoint.answer(request())).body is True

    run(call())


def test_one_that_answers_when_the_loop_is_gone() -> None:
    go, gone = threading.Event(), threading.Event()

    def late(self: Endpoint, request: EndpointRequest) -> None:
        go.wait(30)
        threading.Thread(target=gone.set).start()

    with pytest.raises(DeadlineExceeded):
        answer(made(late, limit=0.001))
    go.set()
    assert gone.wait(30)
