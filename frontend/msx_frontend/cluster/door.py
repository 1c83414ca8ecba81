"""A port that is open until all expected streams have come: each says its key first, and others get no answer."""

from __future__ import annotations

import asyncio
import logging
import secrets
import socket
import ssl
from collections.abc import Callable, Collection
from typing import cast

import msgspec

from msx_frontend.cluster.agent_messages import CONTENT, HELLO, KEY_SIZE, WELCOME, Hello
from msx_frontend.cluster.tls import tune

log = logging.getLogger("msx.cluster")

HANDSHAKE = 10.0
"""Seconds that a connection has for its handshake, and then for its first bytes."""
BACKLOG = 256
GUESTS = 64
"""Connections at once that have not said the key, beyond the expected ones; more are closed."""

StreamName = tuple[str, int]
"""The kind of a stream, and the number of its rank or share."""


class AgentStream:
    """An accepted connection. `connect` gives it to its reader (a `ByteStream` of the launcher)."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self.transport = transport
        self._taken = False
        self._early = b""

    async def connect(self, reader: asyncio.BaseProtocol) -> None:
        if self._taken or self.transport.is_closing():
            raise ConnectionError("The connection with the node has ended.")
        self._taken = True
        self.transport.set_protocol(reader)
        reader.connection_made(self.transport)
        if self._early:
            cast(asyncio.Protocol, reader).data_received(self._early)
        self.transport.resume_reading()

    def keep(self, data: bytes) -> None:
        """What a loop had decrypted before it was told to pause."""
        self._early += data

    def close(self) -> None:
        """Unless it was connected: then its reader closes it."""
        if not self._taken:
            self.transport.abort()


class Door:
    """Opens with `open`. `arrived` resolves to all expected streams, or raises OSError when `close` comes first.

    `content` takes the connections that agents make to fetch contents, any number while the door is open.
    """

    def __init__(
        self,
        context: ssl.SSLContext,
        expected: Collection[StreamName],
        content: Callable[[AgentStream], None] | None = None,
        key: str = "",
    ) -> None:
        """Without `key` it makes one."""
        self.key = key or secrets.token_hex(KEY_SIZE)
        self._context = context
        self._missing = set(expected)
        self._room = len(self._missing) + GUESTS
        self._content = content
        self._streams: dict[StreamName, AgentStream] = {}
        self._server: asyncio.Server | None = None
        self._open: set[_Guest] = set()
        self.arrived: asyncio.Future[dict[StreamName, AgentStream]] = asyncio.get_running_loop().create_future()

    async def open(self, address: str) -> int:
        """Returns the port. Raises OSError."""
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        listening = socket.create_server((address, 0), family=family, backlog=BACKLOG)
        self._server = await asyncio.get_running_loop().create_server(
            lambda: _Guest(self), sock=listening, ssl=self._context, ssl_handshake_timeout=HANDSHAKE
        )
        return int(listening.getsockname()[1])

    def close(self, reason: str = "the port was closed") -> None:
        """Streams that have arrived and were not taken end. Idempotent."""
        self._shut()
        if not self.arrived.done():
            self.arrived.set_exception(ConnectionAbortedError(reason))
            self.arrived.exception()  # whoever does not wait need not be told
        for stream in self._streams.values():
            stream.close()

    def _shut(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        for guest in list(self._open):
            guest.end()

    def admit(self, hello: Hello) -> bool:
        """Whether these first bytes are of an expected stream."""
        if not secrets.compare_digest(hello.key.encode(), self.key.encode()):
            return False
        if hello.stream == CONTENT:
            return self._content is not None
        return _name(hello) in self._missing

    def enter(self, hello: Hello, stream: AgentStream) -> None:
        if hello.stream == CONTENT and self._content is not None:
            return self._content(stream)
        name = _name(hello)
        self._missing.discard(name)
        self._streams[name] = stream
        if not self._missing and not self.arrived.done():
            self._shut()
            self.arrived.set_result(self._streams)
        return None


class _Guest(asyncio.Protocol):
    """A connection before it has said its key."""

    def __init__(self, door: Door) -> None:
        self._door = door
        self._read = b""
        self._transport: asyncio.Transport | None = None
        self._limit: asyncio.TimerHandle | None = None
        self._stream: AgentStream | None = None
        """Once it has been admitted."""
        self._refused = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        if len(self._door._open) >= self._door._room:
            self._transport.abort()
            return
        tune(transport)
        self._door._open.add(self)
        self._limit = asyncio.get_running_loop().call_later(HANDSHAKE, self.end)

    def data_received(self, data: bytes) -> None:
        if self._stream is not None:
            self._stream.keep(data)
        elif not self._refused:
            self._read += data
            if len(self._read) >= HELLO:
                self._judge()

    def _judge(self) -> None:
        hello = _hello(self._read) if len(self._read) == HELLO else None
        if hello is None or not self._door.admit(hello):
            log.warning("a connection to a port for agents was refused: it does not have the key")
            self._refused = True
            self.end()
            return
        self._leave()
        assert self._transport is not None
        self._transport.pause_reading()
        self._transport.write(WELCOME)
        self._stream = AgentStream(self._transport)
        self._door.enter(hello, self._stream)

    def connection_lost(self, exc: Exception | None) -> None:
        self._leave()

    def end(self) -> None:
        self._leave()
        if self._transport is not None:
            self._transport.abort()

    def _leave(self) -> None:
        self._door._open.discard(self)
        if self._limit is not None:
            self._limit.cancel()
            self._limit = None


def _name(hello: Hello) -> StreamName:
    return hello.stream, hello.share if hello.stream == "agent" else hello.rank


def _hello(data: bytes) -> Hello | None:
    try:
        return msgspec.json.decode(data.rstrip(b" "), type=Hello)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
