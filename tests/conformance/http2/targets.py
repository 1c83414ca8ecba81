"""Servers that the cases are played against: each answers GET, HEAD and POST of `PATH` when the request is complete."""

from __future__ import annotations

import asyncio
import functools
import ssl
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

from msx_frontend.net.http2.connection import Http2Protocol
from msx_frontend.net.http2.header_blocks import encode_headers
from msx_frontend.net.http2.headers import Headers
from msx_frontend.net.http2.limits import Limits
from msx_frontend.net.http2.stream import Stream
from tests.certificates import Certificate, write_pem
from tests.conformance.http2.client import Client

Target = Callable[[], AbstractAsyncContextManager[Client]]

_HEAD = encode_headers([(b":status", b"200"), (b"content-type", b"text/plain")])
_LAST = encode_headers([(b"server-timing", b"total")])
BODY = b"This is the answer to any request at all."


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


@asynccontextmanager
async def clear_text() -> AsyncIterator[Client]:
    async with _served(None, None) as client:
        yield client


@asynccontextmanager
async def tls() -> AsyncIterator[Client]:
    async with _served(*_contexts()) as client:
        yield client


TARGETS: dict[str, Target] = {"clear text": clear_text, "TLS": tls}


@asynccontextmanager
async def _served(server_tls: ssl.SSLContext | None, client_tls: ssl.SSLContext | None) -> AsyncIterator[Client]:
    loop = asyncio.get_running_loop()
    lost = loop.create_future()
    server = await loop.create_server(
        lambda: Http2Protocol(_accept, Limits(), lost.set_result), "127.0.0.1", 0, ssl=server_tls
    )
    port = server.sockets[0].getsockname()[1]
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=client_tls)
    try:
        yield Client(reader, writer)
    finally:
        writer.close()
        server.close()
    protocol = await lost
    assert (protocol.streams, protocol.held) == (0, 0)


@functools.cache
def _contexts() -> tuple[ssl.SSLContext, ssl.SSLContext]:
    own = Certificate.make()
    with tempfile.TemporaryDirectory() as folder:
        key, certificate = write_pem(own, Path(folder))
        server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        server.load_cert_chain(certificate, key)
    client = ssl.create_default_context(cadata=own.pem.decode())
    for context in (server, client):
        context.set_alpn_protocols(["h2"])
    return server, client
