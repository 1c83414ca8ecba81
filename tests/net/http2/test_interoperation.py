"""gRPC's own client over real sockets, in clear text and TLS, on both loops: it is what will be at the other end."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import grpc
import grpc.aio
import pytest

from msx_net.connections import turns
from msx_net.http2.connection import Http2Protocol
from msx_net.http2.header_blocks import encode_headers
from msx_net.http2.headers import Headers
from msx_net.http2.limits import Limits
from msx_net.http2.stream import Stream
from tests.certificates import Certificate
from tests.loops import run

HEAD = encode_headers([(b":status", b"200"), (b"content-type", b"application/grpc")])
STATUS = encode_headers([(b"grpc-status", b"0")])
END = cast(Any, grpc.aio).EOF
LARGEST = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]


class Echo:
    """Sends back what comes as it comes, or all of it at the end; `/hang` says nothing, `/flood` sends 8 MB."""

    def __init__(self, stream: Stream, path: bytes, lost: list[str]) -> None:
        self.stream, self.path, self.lost_streams = stream, path, lost
        self.body: list[bytes] = []
        self.drains = 0
        if path == b"/flood":
            self.stream.send_headers(HEAD)
            self.flood()
        elif path == b"/each":
            self.stream.send_headers(HEAD)

    def data(self, data: bytes) -> None:
        self.stream.consumed(len(data))
        if self.path == b"/each":
            self.stream.send_data(data)
        elif self.path == b"/whole":
            self.body.append(data)

    def ended(self) -> None:
        if self.path == b"/each":
            self.stream.send_trailers(STATUS)
        elif self.path == b"/whole":
            self.stream.send_whole(HEAD, b"".join(self.body), STATUS)

    def flood(self) -> None:
        while not self.stream.blocked and len(self.body) < 80:
            self.body.append(b"\0\0\1\x86\xa0" + bytes(100_000))
            self.stream.send_data(self.body[-1])
        if len(self.body) == 80:
            self.stream.send_trailers(STATUS)

    def drained(self) -> None:
        self.drains += 1
        self.flood()

    def too_slow(self, reason: str) -> None: ...

    def lost(self, reason: str) -> None:
        self.lost_streams.append(reason)


class Service:
    def __init__(self) -> None:
        self.echoes: list[Echo] = []
        self.connections: set[Http2Protocol] = set()
        self.lost: list[str] = []
        self.port = 0

    def accept(self, stream: Stream, headers: Headers, ended: bool) -> Echo:
        self.echoes.append(Echo(stream, dict(headers)[b":path"], self.lost))
        return self.echoes[-1]

    def connection(self) -> Http2Protocol:
        limits = Limits(stream_window=16 << 20, max_frame_size=1 << 16)
        protocol = Http2Protocol(self.accept, limits, self.connections.discard)
        self.connections.add(protocol)
        return protocol

    async def until(self, ready: Callable[[], bool]) -> None:
        while not ready():
            await asyncio.sleep(0.001)


@asynccontextmanager
async def service(tls: Path | None) -> AsyncIterator[tuple[Service, Any]]:
    serves, context, certificate = Service(), None, Certificate.make()
    if tls is not None:
        chain, key = tls / "chain.pem", tls / "key.pem"
        chain.write_bytes(certificate.pem)
        key.write_bytes(certificate.key_pem)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(chain, key)
        context.set_alpn_protocols(["h2"])
    server = await asyncio.get_running_loop().create_server(serves.connection, "127.0.0.1", 0, ssl=context)
    serves.port = server.sockets[0].getsockname()[1]
    target = f"localhost:{serves.port}"
    if tls is None:
        channel = grpc.aio.insecure_channel(target, options=LARGEST)
    else:
        credentials = grpc.ssl_channel_credentials(certificate.pem)
        channel = grpc.aio.secure_channel(target, credentials, options=LARGEST)
    try:
        async with channel:
            yield serves, channel
        await serves.until(lambda: not serves.connections)
    finally:
        for connection in serves.connections:
            connection.abort()
        server.close()
        await server.wait_closed()


@pytest.fixture(params=["asyncio", "uvloop", "asyncio tls", "uvloop tls"])
def with_service(
    request: pytest.FixtureRequest, tmp_path: Path
) -> Callable[[Callable[[Service, Any], Awaitable[None]]], None]:
    loop, _, tls = request.param.partition(" ")

    async def serve(test: Callable[[Service, Any], Awaitable[None]]) -> None:
        async with service(tmp_path if tls else None) as (serves, channel):
            await test(serves, channel)

    return lambda test: run(serve(test), loop)


WithService = Callable[[Callable[[Service, Any], Awaitable[None]]], None]


async def many_calls(serves: Service, channel: Any) -> None:
    call = channel.unary_unary("/whole")
    messages = [bytes([number]) * 150 for number in range(200)] + [bytes(5 << 20), b""]
    assert await asyncio.gather(*(call(message) for message in messages)) == messages
    assert serves.lost == []


def test_calls(with_service: WithService) -> None:
    with_service(many_calls)


def test_calls_that_are_read_in_many_turns(with_service: WithService, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading is paused between them."""
    monkeypatch.setattr(turns, "TURN", -1.0)
    with_service(many_calls)


def test_both_directions_stream(with_service: WithService) -> None:
    async def test(serves: Service, channel: Any) -> None:
        call = channel.stream_stream("/each")()
        for size in (1, 100, 100_000, 3 << 20, 5):
            message = b"x" * size
            await call.write(message)
            assert await call.read() == message
        await call.done_writing()
        assert await call.read() == END
        assert await call.code() == grpc.StatusCode.OK

    with_service(test)


def test_a_reader_that_takes_its_time(with_service: WithService) -> None:
    async def test(serves: Service, channel: Any) -> None:
        messages = aiter(channel.unary_stream("/flood")(b""))
        assert len(await anext(messages)) == 100_000
        assert [len(message) async for message in messages] == [100_000] * 79
        (flood,) = serves.echoes
        assert flood.drains > 0

    with_service(test)


def test_a_client_that_cancels(with_service: WithService) -> None:
    async def test(serves: Service, channel: Any) -> None:
        call = channel.unary_unary("/hang")(b"")
        await serves.until(lambda: len(serves.echoes) == 1)
        call.cancel()
        await serves.until(lambda: bool(serves.lost))
        assert serves.lost == ["the client reset the stream (CANCEL)"]

    with_service(test)


def test_a_graceful_end(with_service: WithService) -> None:
    async def test(serves: Service, channel: Any) -> None:
        call = channel.stream_stream("/each")()
        await call.write(b"before")
        assert await call.read() == b"before"
        (old,) = serves.connections
        old.shutdown()
        assert await channel.unary_unary("/whole")(b"more") == b"more"
        await call.write(b"after")
        assert await call.read() == b"after"
        await call.done_writing()
        assert await call.code() == grpc.StatusCode.OK
        await serves.until(lambda: old not in serves.connections)
        assert await channel.unary_unary("/whole")(b"again") == b"again"
        assert serves.lost == []

    with_service(test)


def test_an_abort(with_service: WithService) -> None:
    async def test(serves: Service, channel: Any) -> None:
        call = channel.unary_unary("/hang")(b"")
        await serves.until(lambda: len(serves.echoes) == 1)
        for connection in list(serves.connections):
            connection.abort()
        assert await call.code() == grpc.StatusCode.UNAVAILABLE
        assert serves.lost == ["the connection was lost"]

    with_service(test)
