"""A connection to a port for agents, from when it is accepted until it has said the key."""

from __future__ import annotations

import asyncio
import socket
import ssl
from typing import Protocol, cast

import msgspec

from msx_ray.agent_messages import HELLO, WELCOME, Hello
from msx_ray.agent_stream import AgentStream
from msx_ray.source_limits import SourceLimits
from msx_ray.tls import tune

GREETING = 20.0
"""Seconds that a connection has from the accept on for its TLS handshake and its hello."""


class AgentPort(Protocol):
    """The port that it has connected to."""

    context: ssl.SSLContext
    limits: SourceLimits

    def admit(self, hello: Hello) -> bool:
        """Whether these first bytes are of an expected stream."""

    def enter(self, hello: Hello, stream: AgentStream) -> None: ...

    def refused(self, connection: UnverifiedConnection) -> None:
        """It does not have the key, and is closed."""

    def left(self, connection: UnverifiedConnection) -> None:
        """It has entered, or is closed."""


class UnverifiedConnection(asyncio.Protocol):
    """TLS begins with its first bytes: one that says nothing costs a descriptor. It closes itself in time."""

    def __init__(self, port: AgentPort, sock: socket.socket, address: str) -> None:
        """`sock` does not block, and is closed by the connection."""
        self.address = address
        self._port, self._sock = port, sock
        self._loop = asyncio.get_running_loop()
        self._read = b""
        self._handshake: asyncio.Task[None] | None = None
        self._has_transport = False
        """The socket is closed by its transport."""
        self._transport: asyncio.Transport | None = None
        self._stream: AgentStream | None = None
        """Once it has been admitted."""
        self._over = False
        self._limit = self._loop.call_later(GREETING, self.end)
        self._loop.add_reader(sock.fileno(), self._begin)
        port.limits.silent.enter(self)

    def _begin(self) -> None:
        """Something can be read: a handshake begins, or the client has left."""
        try:
            first = self._sock.recv(1, socket.MSG_PEEK)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            first = b""
        if not first:
            self.end()
            return
        self._loop.remove_reader(self._sock.fileno())
        self._handshake = self._loop.create_task(self._shake_hands(), name="agent-handshake")
        self._port.limits.silent.leave(self)
        self._port.limits.speaking.enter(self)

    async def _shake_hands(self) -> None:
        self._has_transport = True
        try:
            await self._loop.connect_accepted_socket(
                lambda: self, self._sock, ssl=self._port.context, ssl_handshake_timeout=GREETING
            )
        except OSError:
            self.end()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        tune(transport)
        if self._over:
            self._transport.abort()  # it ended while its handshake did: closing would wait for the client

    def data_received(self, data: bytes) -> None:
        if self._stream is not None:
            self._stream.keep(data)
        elif not self._over:
            self._read += data
            if len(self._read) >= HELLO:
                self._judge()

    def _judge(self) -> None:
        hello = _hello(self._read) if len(self._read) == HELLO else None
        if hello is None or not self._port.admit(hello):
            self._port.refused(self)
            self.end()
            return
        self._leave()
        assert self._transport is not None
        self._transport.pause_reading()
        self._transport.write(WELCOME)
        self._stream = AgentStream(self._transport)
        self._port.enter(hello, self._stream)

    def connection_lost(self, exc: Exception | None) -> None:
        self._leave()

    def end(self) -> None:
        """Close it now. Idempotent."""
        if self._over:
            return
        self._leave()
        if self._transport is not None:
            self._transport.abort()
        elif self._handshake is not None:
            self._handshake.cancel()
        if not self._has_transport:
            self._loop.remove_reader(self._sock.fileno())
            self._sock.close()

    def _leave(self) -> None:
        self._over = True
        self._limit.cancel()
        self._port.limits.silent.leave(self)
        self._port.limits.speaking.leave(self)
        self._port.left(self)


def _hello(data: bytes) -> Hello | None:
    try:
        return msgspec.json.decode(data.rstrip(b" "), type=Hello)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
