"""A client of the connections that answer predictions by themselves: bytes in, and what they make of them."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import httptools
import uvicorn

from msx_core.service_errors import ServiceError
from msx_net.connections.limits import ConnectionLimits
from msx_net.http.direct import Direct
from msx_net.http.exchange import Exchange as Served
from msx_net.http.v1.connection import Http1Connection
from msx_net.http.v1.server import ServerState
from msx_net.http.v1.settings import Http1Settings
from msx_net.http.wire import PHRASES, StreamBroken
from tests.net.http.client import Exchange


class FakeTransport:
    """Keeps what is written; a slow reader `pauses` the protocol by itself."""

    def __init__(self) -> None:
        self.written = bytearray()
        self.writes = 0
        self.closed = self.ended = self.paused = False
        self.unsent = 0
        """Bytes that the client has not taken; a test sets it."""
        self.arrived = asyncio.Event()

    def write(self, data: bytes) -> None:
        if not self.closed:
            self.written += data
            self.writes += 1
        self.arrived.set()

    def writelines(self, parts: Any) -> None:
        self.write(b"".join(parts))

    def close(self) -> None:
        self.closed = True
        self.arrived.set()

    abort = close

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        """The connection reads and drops what still comes."""
        self.ended = True
        self.arrived.set()

    def is_closing(self) -> bool:
        return self.closed

    def get_write_buffer_size(self) -> int:
        return self.unsent

    def get_extra_info(self, name: str) -> Any:
        return {"peername": ("10.0.0.1", 4711), "sockname": ("127.0.0.1", 8080)}.get(name)

    def pause_reading(self) -> None:
        self.paused = True

    def resume_reading(self) -> None:
        self.paused = False


def connect(
    app: Any, direct: Direct | None, limits: ConnectionLimits | None = None
) -> tuple[Http1Connection, FakeTransport]:
    """A connection of a listener with this ASGI app, and its transport."""
    config = uvicorn.Config(app, lifespan="off", log_config=None, proxy_headers=False)
    settings = Http1Settings(direct, limits)
    protocol = Http1Connection(settings, config=config, server_state=ServerState(), app_state={})
    transport = FakeTransport()
    protocol.connection_made(cast(asyncio.Transport, transport))
    return protocol, transport


def request(method: str, target: str, body: bytes | None, **headers: str) -> bytes:
    """As it goes over the wire; without a body its length is not given, either."""
    lines = [f"{method} {target} HTTP/1.1", *(f"{name.replace('_', '-')}: {text}" for name, text in headers.items())]
    if "host" not in headers:
        lines.insert(1, "host: x")
    if body is None:
        lines.append("transfer-encoding: chunked")
    elif "content_length" not in headers:
        lines.append(f"content-length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + (body or b"")


class DirectExchange(Exchange):
    """One request on a connection of its own, and its reply."""

    def open(self, served: Served, head: bytes) -> None:
        self._is_head = head.startswith(b"HEAD ")
        direct = served.direct()
        self._protocol, self._transport = connect(served, direct)
        self._parser = httptools.HttpResponseParser(self)
        self._read = 0
        self._left = False
        self._protocol.data_received(head)

    def send_body(self, data: bytes, *, more: bool = False) -> None:
        self._protocol.data_received(b"%x\r\n%b\r\n" % (len(data), data))
        if not more:
            self._protocol.data_received(b"0\r\n\r\n")

    def leave(self) -> None:
        self._left = True
        self._protocol.connection_lost(None)

    def read(self) -> None:
        self._parse()

    async def until_chunks(self, count: int) -> None:
        while self._parse() < count:
            await self._more()

    async def finish(self) -> Exchange:
        while not (self._parse() >= 0 and self.ended) and not self._over:
            await self._more()
        if self.status and not self.ended:
            raise StreamBroken(ServiceError("The connection was closed."))
        return self

    @property
    def _over(self) -> bool:
        return self._left or self._transport.closed or self._transport.ended

    async def _more(self) -> None:
        self._transport.arrived.clear()
        await self._transport.arrived.wait()

    def _parse(self) -> int:
        new = bytes(self._transport.written[self._read :])
        self._read += len(new)
        if new:
            self._parser.feed_data(new)
        return len(self.chunks)

    # -- what the parser finds --

    def on_status(self, reason: bytes) -> None:
        usual = PHRASES.get(self._parser.get_status_code())  # 499 has none
        self.reason = b"" if reason == usual else reason

    def on_header(self, name: bytes, value: bytes) -> None:
        assert name.decode() not in self.headers, f"a header twice: {name!r}"
        self.headers[name.decode()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        self.status = self._parser.get_status_code()
        self.ended = self._is_head

    def on_body(self, body: bytes) -> None:
        self.chunks.append(body)

    def on_message_complete(self) -> None:
        self.ended = True


def begin_direct(served: Served, method: str, target: str, body: bytes | None = b"", **headers: str) -> Exchange:
    exchange = DirectExchange()
    exchange.open(served, request(method, target, body, **headers))
    return exchange
