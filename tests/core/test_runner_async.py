from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from msx_core.resolve import resolve_object
from msx_sdk import InvalidInput, Last
from msx_sdk.context import Context, ModelInfo
from msx_sdk.runner import AsyncRunner
from tests.core.recording import LAST, Handles, Sink, requests, run_alone, run_async


def test_an_async_handler_answers_one_request() -> None:
    async def handle(data: Any, context: Context) -> Any:
        await asyncio.sleep(0)
        return [bytes(data[0]["body"]) + context.get_request_id().encode()]

    assert run_alone(Handles(handle), requests(b"a")[0]).events == {"r0": [b"ar0", LAST]}


def test_an_async_generator_streams() -> None:
    async def handle(data: Any, context: Context) -> AsyncGenerator[Any, None]:
        yield ["a"]
        await asyncio.sleep(0)
        yield [None]
        yield [Last("b")]

    assert run_alone(Handles(handle), requests(b"")[0]).events == {"r0": [b"a", b"b", LAST]}


def test_an_async_generators_end_ends_the_request() -> None:
    async def handle(data: Any, context: Context) -> AsyncGenerator[Any, None]:
        yield ["a"]

    assert run_alone(Handles(handle), requests(b"")[0]).events == {"r0": [b"a", b"", LAST]}


@pytest.mark.parametrize("error", [ValueError("x"), SystemExit(1), asyncio.CancelledError()])
def test_an_async_handler_that_raises_fails_its_request(error: BaseException) -> None:
    async def handle(data: Any, context: Context) -> Any:
        raise error

    assert run_alone(Handles(handle), requests(b"")[0]).failure("r0").status == 503


def test_an_async_error_midway() -> None:
    async def handle(data: Any, context: Context) -> AsyncGenerator[Any, None]:
        yield ["a"]
        raise InvalidInput("no more")

    sink = run_alone(Handles(handle), requests(b"")[0])
    assert sink.events["r0"][0] == b"a"
    assert sink.failure("r0").status == 400


def test_an_async_generator_of_bare_values_is_refused() -> None:
    async def handle(data: Any, context: Context) -> AsyncGenerator[Any, None]:
        yield "bare"

    assert "yields or sends a list" in run_alone(Handles(handle), requests(b"")[0]).failure("r0").message


def test_many_async_calls_at_once_do_not_mix() -> None:
    class Meets:
        def __init__(self) -> None:
            self.waiting = 0
            self.all_here = asyncio.Event()

        async def handle(self, data: Any, context: Context) -> Any:
            context.set_response_header(0, "X-Id", context.get_request_id())
            self.waiting += 1
            if self.waiting == 5:
                self.all_here.set()
            await self.all_here.wait()
            return [context.get_request_id()]

    async def all_of_them() -> None:
        handler = Meets()
        await asyncio.gather(*(run_async(handler, request, sink) for request in requests(*[b""] * 5)))

    sink = Sink()
    asyncio.run(all_of_them())
    for n in range(5):
        assert sink.events[f"r{n}"] == [f"r{n}".encode(), LAST]
        assert sink.heads[f"r{n}"][0].headers == [("X-Id", f"r{n}")]


class Waits:
    """Waits for ever, at once or after its first chunk."""

    def __init__(self) -> None:
        self.reached, self.cleaned_up = asyncio.Event(), False

    async def wait(self, data: Any, context: Context) -> Any:
        try:
            self.reached.set()
            await asyncio.Event().wait()
        finally:
            self.cleaned_up = True

    handle: Any = wait


class WaitsInStream(Waits):
    async def stream(self, data: Any, context: Context) -> AsyncGenerator[Any, None]:
        yield ["a"]
        await self.wait(data, context)

    handle = stream


@pytest.mark.parametrize(("kind", "events"), [(Waits, {}), (WaitsInStream, {"r0": [b"a"]})])
def test_cancelling_runs_the_finally_blocks(kind: type[Waits], events: Any) -> None:
    async def cancel() -> None:
        handler = kind()
        (request,) = requests(b"")
        task = asyncio.create_task(run_async(handler, request, sink))
        await handler.reached.wait()
        request.cancelled = True
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert handler.cleaned_up

    sink = Sink()
    asyncio.run(cancel())
    assert sink.events == events


def test_a_cancelled_stream_that_goes_on_is_closed_at_its_next_yield() -> None:
    marks: list[str] = []
    (request,) = requests(b"")

    async def handle(data: Any, context: Context) -> AsyncGenerator[Any, None]:
        try:
            yield ["a"]
            request.cancelled = True
            yield ["b"]
            marks.append("went on")
        finally:
            marks.append("closed")

    assert run_alone(Handles(handle), request).events == {"r0": [b"a"]}
    assert marks == ["closed"]


def test_the_caller_hears_of_what_an_async_handler_raises() -> None:
    error, raised = ValueError("x"), list[BaseException]()

    async def handle(data: Any, context: Context) -> Any:
        raise error

    runner = AsyncRunner(resolve_object(Handles(handle)), Context(ModelInfo("m")), raised.append)
    asyncio.run(runner.run(requests(b"")[0], Sink()))
    assert raised == [error]
