"""The limits that a REST port has over HTTP/2."""

from __future__ import annotations

import asyncio

import httpx
import pytest

from msx_net.connections.limits import ConnectionLimits
from msx_net.http.v2.connection import KEPT_HEADS, LONGEST_HEAD
from msx_net.http.v2.listener import RestHttp2, http2_limits
from msx_net.http2.limits import LARGEST_WINDOW
from msx_net.listening.address import Address
from msx_net.listening.listener import Listener
from tests.frontend.net.predictions import FakeRegistry, answer, begin_answer, predictions
from tests.http2_transport import Http2Transport
from tests.net.http.client import FakeAccessLog
from tests.net.http.exchanges import exchange_of
from tests.net.http.v2.client import Client, head
from tests.net.http2.peer import in_loop


def test_a_whole_message_of_grpc_fits() -> None:
    limits = http2_limits(ConnectionLimits(), 6_553_500)
    assert limits.stream_window == 2 * (6_553_500 + 5)
    assert limits.max_held >= 4 * limits.stream_window
    assert http2_limits(ConnectionLimits(), 1 << 40).stream_window <= LARGEST_WINDOW


@in_loop
async def test_a_head_that_is_too_large_is_answered_with_a_sentence() -> None:
    limits = http2_limits(ConnectionLimits(max_request_head_size=2000), 1000)
    registry = FakeRegistry()
    client = Client(exchange_of(predictions(registry), log=FakeAccessLog()), limits=limits)
    client.begin(1, head("POST", "/predictions/m", x_large="x" * 2000), b"")
    reply = await client.whole(1)
    assert (reply.status, reply.headers["content-type"]) == (431, "application/json")
    assert b"max_request_head_size (2000 bytes)" in reply.body
    assert not client.transport.closed


@in_loop
async def test_a_listener_that_stops_finishes_what_has_begun() -> None:
    """And a request that comes behind its GOAWAY is not served, so that the client may repeat it elsewhere."""
    registry = FakeRegistry()
    served = exchange_of(predictions(registry), log=FakeAccessLog())
    http2 = RestHttp2(served, served.direct(), ConnectionLimits(), 1000)
    listener = Listener("inference", Address("http", "127.0.0.1", 0), served, http2=http2)
    await listener.start()
    async with httpx.AsyncClient(transport=Http2Transport(), base_url=str(listener.address)) as client:
        asked = asyncio.ensure_future(client.post("/predictions/m", content=b"x"))
        job = await registry.next_job()
        stopping = asyncio.ensure_future(listener.stop(30))
        await asyncio.sleep(0)
        begin_answer(job, b"one", headers=[("content-type", "text/plain")])
        job.finish(200)
        assert (await asked).text == "one"
        await stopping
        with pytest.raises((httpx.HTTPError, OSError)):
            await client.post("/predictions/m", content=b"x")


@in_loop
async def test_a_listener_that_stops_cuts_what_does_not_end() -> None:
    registry = FakeRegistry()
    served = exchange_of(predictions(registry), log=FakeAccessLog())
    listener = Listener(
        "inference",
        Address("http", "127.0.0.1", 0),
        served,
        http2=RestHttp2(served, served.direct(), ConnectionLimits(), 1000),
    )
    await listener.start()
    async with httpx.AsyncClient(transport=Http2Transport(), base_url=str(listener.address)) as client:
        asked = asyncio.ensure_future(client.post("/predictions/m", content=b"x"))
        job = await registry.next_job()
        await listener.stop(0.01)
        assert job.done
        with pytest.raises(httpx.RemoteProtocolError):
            await asked


@in_loop
async def test_how_many_heads_a_connection_keeps() -> None:
    """And none that is long."""
    registry = FakeRegistry()
    limits = http2_limits(ConnectionLimits(), 1000)
    client = Client(exchange_of(predictions(registry), log=FakeAccessLog()), limits=limits)
    for number in range(3 * KEPT_HEADS):
        fields = head("POST", "/predictions/m", x_number=str(number), x_long="x" * (LONGEST_HEAD * (number % 2)))
        client.begin(2 * number + 1, fields, b"")
        answer(await registry.next_job(), b"ok")
        assert (await client.whole(2 * number + 1)).status == 200
    kept = client.connection._kept
    assert 0 < len(kept) <= KEPT_HEADS
    assert max(sum(len(name) + len(value) for name, value in fields) for _, fields in kept.values()) <= LONGEST_HEAD
