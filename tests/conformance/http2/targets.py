"""Servers that the cases are played against: each answers GET, HEAD and POST of `PATH` when the request is complete.

One is the framing alone, with an owner of streams of its own; the other a listener of a REST port with an app of ASGI.
"""

from __future__ import annotations

import asyncio
import functools
import ssl
from collections.abc import Callable
from typing import Protocol

from msx_net.connections.limits import ConnectionLimits
from msx_net.http.v2.listener import RestHttp2
from msx_net.http.wire import Receive, Scope, Send, send_whole
from msx_net.http2.connection import Http2Protocol
from msx_net.http2.header_blocks import encode_headers
from msx_net.http2.headers import Headers
from msx_net.http2.limits import Limits
from msx_net.http2.stream import Stream
from msx_net.listening.address import Address
from msx_net.listening.listener import Listener
from msx_net.tls.identity import TlsIdentity
from msx_net.tls.listeners import ListenerTls
from tests.certificates import Certificate
from tests.conformance.http2.client import Client
from tests.conformance.http2.script import Case


class Target(Protocol):
    tls: bool
    port: int

    async def start(self) -> None: ...

    async def stop(self) -> None:
        """Nothing is left of its connections."""


BODY = b"This is the answer to any request at all."

_HEAD = encode_headers([(b":status", b"200"), (b"content-type", b"text/plain")])
_LAST = encode_headers([(b"server-timing", b"total")])


# -- the framing alone --


class _Answer:
    """The owner of a stream that answers when the request is complete."""

    def __init__(self, stream: Stream, headers: Headers) -> None:
        self._stream = stream
        self._bodiless = (b":method", b"HEAD") in headers

    def data(self, data: bytes) -> None:
        self._stream.consumed(len(data))

    def ended(self) -> None:
        if self._bodiless:
            self._stream.send_headers(_HEAD, end=True)
        else:
            self._stream.send_whole(_HEAD, BODY, _LAST)

    def lost(self, reason: str) -> None: ...

    def drained(self) -> None: ...

    def too_slow(self, reason: str) -> None: ...


def _accept(stream: Stream, headers: Headers, ended: bool) -> _Answer:
    answer = _Answer(stream, headers)
    if ended:
        answer.ended()
    return answer


class Framing:
    def __init__(self, *, tls: bool) -> None:
        self.tls, self.port = tls, 0
        self._connections: set[Http2Protocol] = set()

    async def start(self) -> None:
        context = _own().context("h2") if self.tls else None
        self._server = await asyncio.get_running_loop().create_server(self._connect, "127.0.0.1", 0, ssl=context)
        self.port = self._server.sockets[0].getsockname()[1]

    def _connect(self) -> Http2Protocol:
        protocol = Http2Protocol(_accept, Limits(), self._lost)
        self._connections.add(protocol)
        return protocol

    def _lost(self, protocol: Http2Protocol) -> None:
        assert (protocol.streams, protocol.held) == (0, 0)
        self._connections.discard(protocol)

    async def stop(self) -> None:
        self._server.close()
        while self._connections:
            await asyncio.sleep(0)


# -- a REST port --


async def _app(scope: Scope, receive: Receive, send: Send) -> None:
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        more = message["more_body"]
    await send_whole(send, 200, [(b"content-type", b"text/plain")], BODY)


class Rest:
    def __init__(self, *, tls: bool) -> None:
        self.tls, self.port = tls, 0

    async def start(self) -> None:
        http2 = RestHttp2(_app, None, ConnectionLimits(), 1 << 20)
        address = Address("https" if self.tls else "http", "127.0.0.1", 0)
        self._listener = Listener("inference", address, _app, _own() if self.tls else None, http2=http2)
        self.port = self._listener.address.port or 0
        await self._listener.start()

    async def stop(self) -> None:
        await self._listener.stop(1)


TARGETS: dict[str, Callable[[], Target]] = {
    "clear text": lambda: Framing(tls=False),
    "TLS": lambda: Framing(tls=True),
    "REST": lambda: Rest(tls=False),
    "REST, TLS": lambda: Rest(tls=True),
}


async def play(case: Case, target: Target) -> None:
    """On a connection of its own."""
    reader, writer = await asyncio.open_connection("127.0.0.1", target.port, ssl=_trusts() if target.tls else None)
    try:
        await Client(reader, writer).play(case)
    finally:
        writer.close()


@functools.cache
def _certificate() -> Certificate:
    return Certificate.make()


@functools.cache
def _own() -> ListenerTls:
    own = _certificate()
    return ListenerTls(TlsIdentity(own.key_pem, own.pem))


@functools.cache
def _trusts() -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=_certificate().pem.decode())
    context.set_alpn_protocols(["h2"])
    return context
