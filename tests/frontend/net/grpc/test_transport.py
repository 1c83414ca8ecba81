"""Transport of every call, as gRPC's own clients see it; the same by both ways."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import grpc
import pytest
from grpc import StatusCode

from msx_frontend.apis.torchserve.grpc.inference import SERVICE
from tests.frontend.net.grpc.harness import Request, Served, answer, begin, failure, request, serving

pytestmark = pytest.mark.usefixtures("transport")

SIZE = 3_000_000
"""Bytes: more than the windows that a call has without asking."""


def with_server(test: Callable[[Served], Awaitable[None]], **settings: Any) -> None:
    async def main() -> None:
        async with serving(**settings) as served:
            await asyncio.wait_for(test(served), 60)

    asyncio.run(main())


def test_messages_of_the_largest_size_one_behind_the_other() -> None:
    async def test(served: Served) -> None:
        data = bytes(SIZE)
        call = served.stream2(*(Request(model_name="m", input={"data": data}, sequence_id="s") for _ in range(5)))
        for _ in range(5):
            job = await served.registry.next_job()
            assert job.fields[0].data == data
            answer(job, data)
        assert [len(reply.prediction) async for reply in call] == [SIZE] * 5

    with_server(test, max_request_size=SIZE + 50, max_response_size=SIZE)


def test_a_request_of_exactly_the_limit() -> None:
    async def test(served: Served) -> None:
        fits = request(data=bytes(SIZE))
        limit = len(fits.SerializeToString())
        assert limit == SIZE + 19
        call = served.predict(fits)
        answer(await served.registry.next_job(), b"fits")
        assert (await call).prediction == b"fits"
        error = await failure(served.predict(request(data=bytes(SIZE + 1))))
        assert error.code() is StatusCode.RESOURCE_EXHAUSTED
        assert f"larger than max ({limit + 1} vs. {limit})" in (error.details() or "")

    with_server(test, max_request_size=SIZE + 19)


@pytest.mark.parametrize("compression", [grpc.Compression.Gzip, grpc.Compression.Deflate])
def test_compressed_requests(compression: grpc.Compression) -> None:
    async def test(served: Served) -> None:
        call = served.predict(request(data=b"x" * 1000), compression=compression)
        job = await served.registry.next_job()
        assert job.fields[0].data == b"x" * 1000
        answer(job, b"y" * 1000)
        assert (await call).prediction == b"y" * 1000
        stream = served.stream2(request(data=b"x" * 1000), compression=compression)
        answer(await served.registry.next_job(), b"z")
        assert [reply.prediction async for reply in stream] == [b"z"]

    with_server(test)


def test_a_method_that_does_not_exist() -> None:
    async def test(served: Served) -> None:
        error = await failure(served.channel.unary_unary("/a.Service/Nothing", bytes, bytes)(b""))
        assert (error.code(), error.details()) == (StatusCode.UNIMPLEMENTED, "Method not found!")

    with_server(test)


def test_metadata_that_is_too_large() -> None:
    async def test(served: Served) -> None:
        error = await failure(served.predict(request(), metadata=(("a", "x" * 20_000),)))
        assert error.code() is StatusCode.RESOURCE_EXHAUSTED
        call = served.predict(request(), metadata=(("a", "x" * 15_000),))
        answer(await served.registry.next_job(), b"fits")
        assert (await call).prediction == b"fits"

    with_server(test)


def test_a_request_that_is_not_a_message() -> None:
    async def test(served: Served) -> None:
        call = served.channel.unary_unary(f"/{SERVICE}/Predictions", bytes, bytes)
        error = await failure(call(b"\xff\xff"))
        assert error.code() is StatusCode.INTERNAL
        assert "The request is not a message of its method's type" in (error.details() or "")

    with_server(test)


def test_many_calls_at_once() -> None:
    async def test(served: Served) -> None:
        calls = [served.predict(request(data=b"%d" % number)) for number in range(300)]
        for _ in calls:
            job = await served.registry.next_job()
            answer(job, job.fields[0].data)
        assert [(await call).prediction for call in calls] == [b"%d" % number for number in range(300)]

    with_server(test)


def test_a_thousand_calls_of_one_connection_and_the_others_wait() -> None:
    async def test(served: Served) -> None:
        calls = [served.predict(request(data=b"%d" % number)) for number in range(1200)]
        jobs = [await served.registry.next_job() for _ in range(1000)]
        assert served.registry.idle
        for turn in range(1200):
            answer(jobs[turn], jobs[turn].fields[0].data)
            if turn < 200:
                jobs.append(await served.registry.next_job())
        assert [(await call).prediction for call in calls] == [b"%d" % number for number in range(1200)]

    with_server(test)


def test_responses_are_never_compressed() -> None:
    """A client that could take them compressed, as grpc's can."""

    async def test(served: Served) -> None:
        call = served.predict(request(data=b"x" * 1000), compression=grpc.Compression.Gzip)
        answer(await served.registry.next_job(), b"y" * 100_000)
        assert (await call).prediction == b"y" * 100_000
        assert dict(await call.initial_metadata()).get("grpc-encoding", "identity") == "identity"

    with_server(test)


def test_what_runs_may_end_while_the_server_stops() -> None:
    async def test(served: Served) -> None:
        call = served.predict(request())
        first = await served.registry.next_job()
        stream = served.stream(request())
        second = await served.registry.next_job()
        begin(second, b"1")
        assert (await anext(aiter(stream))).prediction == b"1"
        stop = asyncio.ensure_future(served.server.stop(1000))
        await asyncio.sleep(0)
        for job in (first, second):
            answer(job, b"2")
        assert (await call).prediction == b"2"
        assert [reply.prediction async for reply in stream] == [b"2"]
        await stop
        assert (await failure(served.predict(request()))).code() is StatusCode.UNAVAILABLE

    with_server(test)


def test_a_connection_that_is_old_is_replaced() -> None:
    """Without an error of any call: also of those that run when it ends."""

    async def test(served: Served) -> None:
        for _ in range(20):
            call = served.predict(request())
            job = await served.registry.next_job()
            await asyncio.sleep(0.01)
            answer(job, b"x")
            assert (await call).prediction == b"x"

    with_server(test, grpc_inference_max_connection_age_ms=5, grpc_inference_max_connection_age_grace_ms=60_000)


def test_a_call_that_outlives_its_old_connection_is_cancelled() -> None:
    async def test(served: Served) -> None:
        call = served.predict(request())
        job = await served.registry.next_job()
        await served.registry.ended(job)
        assert job.cancelled
        assert (await failure(call)).code() is StatusCode.UNAVAILABLE

    with_server(test, grpc_inference_max_connection_age_ms=5, grpc_inference_max_connection_age_grace_ms=5)


def test_a_host_with_several_addresses_has_one_port() -> None:
    async def test(served: Served) -> None:
        port = served.server.inference.bound_port
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            call = Served(served.server, channel).predict(request())
            answer(await served.registry.next_job(), b"x")
            assert (await call).prediction == b"x"

    with_server(test, grpc_inference_address="localhost")
