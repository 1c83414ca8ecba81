"""Streams over gRPC that have not begun: their initial metadata leave early, by both transports."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from grpc import StatusCode

from msx_core.service_errors import HandlerFailed
from tests.frontend.net.grpc.harness import Served, answer, failure, request, serving
from tests.net.silence import Silence

pytestmark = pytest.mark.usefixtures("transport")


def with_server(test: Callable[[Served, Silence], Awaitable[None]]) -> None:
    async def main() -> None:
        silence = Silence()
        async with serving(heartbeats=silence) as served:
            await asyncio.wait_for(test(served, silence), 60)
        assert silence.count == 0

    asyncio.run(main())


def test_the_metadata_come_before_the_first_message() -> None:
    async def test(served: Served, silence: Silence) -> None:
        call = served.stream(request())
        job = await served.registry.next_job()
        silence.passes()
        await call.initial_metadata()
        assert silence.count == 0
        answer(job, b"a", b"b")
        assert [reply.prediction async for reply in call] == [b"a", b"b"]
        assert await call.code() is StatusCode.OK

    with_server(test)


def test_what_fails_behind_them_has_its_status() -> None:
    async def test(served: Served, silence: Silence) -> None:
        call = served.stream(request())
        job = await served.registry.next_job()
        silence.passes()
        await call.initial_metadata()
        job.fail(HandlerFailed(400, "No."))
        error = await failure(call.read())
        assert error.code() is StatusCode.INVALID_ARGUMENT

    with_server(test)


def test_a_message_at_the_same_time() -> None:
    async def test(served: Served, silence: Silence) -> None:
        call = served.stream(request())
        job = await served.registry.next_job()
        silence.passes()
        answer(job, b"a")
        assert [reply.prediction async for reply in call] == [b"a"]

    with_server(test)


def test_requests_of_one_sequence() -> None:
    async def test(served: Served, silence: Silence) -> None:
        call = served.stream2(request())
        job = await served.registry.next_job()
        silence.passes()
        await call.initial_metadata()
        answer(job, b"a")
        assert [reply.prediction async for reply in call] == [b"a"]

    with_server(test)


def test_a_call_that_is_not_a_stream_waits() -> None:
    async def test(served: Served, silence: Silence) -> None:
        call = served.predict(request())
        job = await served.registry.next_job()
        assert silence.count == 0
        answer(job, b"a")
        assert (await call).prediction == b"a"

    with_server(test)


def test_a_client_that_leaves() -> None:
    async def test(served: Served, silence: Silence) -> None:
        call = served.stream(request())
        job = await served.registry.next_job()
        silence.passes()
        call.cancel()
        await served.registry.ended(job)

    with_server(test)
