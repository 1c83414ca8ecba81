"""Replies of HTTP/1.0, which end with the connection, over real sockets: from the connection and from the ASGI app."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from msx_core.service_errors import WorkerDied
from msx_frontend.job import Job
from msx_net.listening.address import Address
from msx_net.listening.listener import Listener
from tests.frontend.net.predictions import FakeRegistry, begin_answer, predictions
from tests.loops import run
from tests.net.http.client import FakeAccessLog
from tests.net.http.exchanges import exchange_of

REQUEST = b"POST /predictions/m HTTP/1.0\r\ncontent-length: 1\r\n\r\nx"
LOOPS = pytest.mark.parametrize("loop", ["asyncio", "uvloop"])


@contextlib.asynccontextmanager
async def streaming() -> AsyncIterator[tuple[Job, asyncio.StreamReader, Listener]]:
    """Serve a stream whose first chunk is with its client: its job, what the client reads, and the listener."""
    registry = FakeRegistry()
    edge = exchange_of(predictions(registry), log=FakeAccessLog())
    listener = Listener("inference", Address("http", "127.0.0.1", 0), edge, None, edge.direct())
    await listener.start()
    reader, writer = await asyncio.open_connection("127.0.0.1", listener.address.port)
    try:
        writer.write(REQUEST)
        job = await registry.next_job()
        begin_answer(job, b"one")
        assert (await reader.readuntil(b"one")).endswith(b"\r\n\r\none")
        yield job, reader, listener
    finally:
        writer.close()
        await listener.stop(1)


@LOOPS
def test_a_stream_that_breaks_is_reset(loop: str) -> None:
    async def test() -> None:
        async with streaming() as (job, reader, _):
            job.fail(WorkerDied("It ended."))
            with pytest.raises(ConnectionResetError):
                await reader.read()

    run(test(), loop)


@LOOPS
def test_a_whole_stream_ends(loop: str) -> None:
    async def test() -> None:
        async with streaming() as (job, reader, _):
            job.sink.chunk(b"two")
            job.finish(200)
            assert await reader.read() == b"two"

    run(test(), loop)


@LOOPS
def test_a_stream_is_reset_when_the_server_stops_in_the_middle(loop: str) -> None:
    async def test() -> None:
        async with streaming() as (_, reader, listener):
            await listener.stop(0)
            with pytest.raises(ConnectionResetError):
                await reader.read()

    run(test(), loop)
