"""Timeouts over HTTP/2, on real listeners of both kinds: the sweep looks at their connections."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import pytest

from msx_net.connections import sweep
from msx_net.connections.limits import ConnectionLimits
from msx_net.grpc.admission import Admission
from msx_net.grpc.direct.listener import DirectListener
from msx_net.grpc.listen import GrpcListen, GrpcServed
from msx_net.http.v2.listener import RestHttp2
from msx_net.http.wire import Receive, Scope, Send
from msx_net.http2 import frames
from msx_net.http2.frames import frame
from msx_net.listening.address import Address
from msx_net.listening.listener import Listener, ListenerContext
from tests.loops import run
from tests.net.http2.peer import Frame


@pytest.fixture(autouse=True)
def looks_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep, "EVERY", 0.005)


@asynccontextmanager
async def grpc_port(limits: ConnectionLimits) -> AsyncIterator[int]:
    listener = DirectListener(GrpcListen("g", "127.0.0.1", 0, 100, 100), GrpcServed([], Admission(None), limits=limits))
    await listener.start()
    yield listener.bound_port
    await listener.stop(1)


@asynccontextmanager
async def rest_port(limits: ConnectionLimits) -> AsyncIterator[int]:
    async def app(scope: Scope, receive: Receive, send: Send) -> None: ...

    http2 = RestHttp2(app, None, limits, 1 << 20)
    address = Address("http", "127.0.0.1", 0)
    listener = Listener("inference", address, app, http2=http2, context=ListenerContext(limits))
    await listener.start()
    yield listener.address.port or 0
    await listener.stop(1)


PORTS = {"gRPC": grpc_port, "REST": rest_port}
Port = Callable[[ConnectionLimits], AbstractAsyncContextManager[int]]


async def until_closed(port: int, answers: int) -> list[Frame]:
    """Frames for a client that sends nothing but its preface, and answers so many PINGs."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(frames.PREFACE + frame(frames.SETTINGS, 0, 0))
    heard: list[Frame] = []
    try:
        while True:
            high, low, kind, flags, stream_id = frames.HEAD.unpack(await reader.readexactly(frames.HEAD_SIZE))
            heard.append(Frame(kind, flags, stream_id, await reader.readexactly(high << 8 | low)))
            if kind == frames.PING and answers:
                answers -= 1
                writer.write(frame(frames.PING, frames.ACK, 0, heard[-1].payload))
    except (asyncio.IncompleteReadError, ConnectionError):
        return heard
    finally:
        writer.close()


@pytest.mark.parametrize("port", PORTS.values(), ids=PORTS)
def test_a_silent_client_is_asked_and_closed(port: Port) -> None:
    async def test() -> None:
        async with port(ConnectionLimits(http2_ping_interval=0.02, http2_ping_timeout=1)) as number:
            heard = await until_closed(number, answers=3)
        assert [frame.kind for frame in heard[3:]] == [frames.PING] * 4

    run(test())


def test_a_rest_port_ends_connections_without_streams() -> None:
    async def test() -> None:
        async with rest_port(ConnectionLimits(keep_alive_timeout=0.02)) as number:
            heard = await until_closed(number, answers=1)
        goaways = [frame.number for frame in heard if frame.kind == frames.GOAWAY]
        assert goaways == [frames.LARGEST_ID, 0], "the last stream that was served is named when the client knows"

    run(test())


def test_a_grpc_port_keeps_connections_without_streams() -> None:
    async def test() -> None:
        limits = ConnectionLimits(keep_alive_timeout=0.01, http2_ping_interval=0.05, http2_ping_timeout=0.01)
        async with grpc_port(limits) as number:
            heard = await until_closed(number, answers=2)
        assert frames.GOAWAY not in [frame.kind for frame in heard]

    run(test())


@pytest.mark.parametrize("port", PORTS.values(), ids=PORTS)
def test_a_client_that_does_not_begin_is_closed(port: Port) -> None:
    async def test() -> None:
        async with port(ConnectionLimits(request_head_timeout=0.02)) as number:
            for sent in (b"", frames.PREFACE[:10], frames.PREFACE):
                reader, writer = await asyncio.open_connection("127.0.0.1", number)
                writer.write(sent)
                try:
                    while await reader.read(100):
                        pass
                except ConnectionError:
                    pass
                writer.close()

    run(test())
