"""Which version of HTTP a connection speaks: by ALPN, or in clear text by its first 24 bytes (RFC 9113 §3.3, §3.4)."""

import asyncio
from collections.abc import Callable

from msx_net.connections.connection import ON_ITS_WAY, close_unless_asked, forgiven, may_be_asked
from msx_net.connections.open_connections import ListenerConnections
from msx_net.http2.frames import PREFACE

H2, HTTP1 = "h2", "http/1.1"
"""Their names in ALPN."""

Connect = Callable[[], asyncio.Protocol]
ConnectHttp1 = Callable[[float], asyncio.Protocol]


class ProtocolChoice(asyncio.Protocol):
    """Hands its transport over as soon as the protocol is known, and has no part in what follows.

    Until then it is a `Connection`. `timeout` seconds after the accept it is closed, or handed over as HTTP/1.1, whose
    first request is late, if its client has begun what may be a preface. `http1` is given the time of the accept.
    """

    __slots__ = ("_connections", "_first", "_http1", "_http2", "_timeout", "_transport", "idle_since")

    def __init__(self, http1: ConnectHttp1, http2: Connect, connections: ListenerConnections, timeout: float) -> None:
        self._http1, self._http2 = http1, http2
        self._connections = connections
        self._timeout = timeout
        self._first = b""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._transport = transport
        self.idle_since = asyncio.get_running_loop().time()
        tls = transport.get_extra_info("ssl_object")
        if tls is None:
            self._connections.add(self)
        else:
            self._hand_over(self._http2() if tls.selected_alpn_protocol() == H2 else self._http1(self.idle_since))

    def data_received(self, data: bytes) -> None:
        data = self._first + data
        if data.startswith(PREFACE):
            self._chosen(self._http2(), data)
        elif PREFACE.startswith(data):
            self._first = data
        else:
            self._chosen(self._http1(self.idle_since), data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._connections.discard(self)

    def forgive(self, seconds: float, now: float) -> None:
        self.idle_since = forgiven(self.idle_since, seconds, now)

    def look(self, now: float) -> None:
        if now - self.idle_since < self._timeout:
            return
        if self._first:
            self._chosen(self._http1(self.idle_since), self._first)
        else:
            close_unless_asked(self._transport)  # without a word: nothing was asked

    def shutdown(self, on_its_way: float = ON_ITS_WAY) -> None:
        if not may_be_asked(self.idle_since, asyncio.get_running_loop().time(), on_its_way):
            close_unless_asked(self._transport)

    def abort(self) -> None:
        self._transport.abort()

    def _chosen(self, protocol: asyncio.Protocol, data: bytes) -> None:
        self._connections.discard(self)
        self._hand_over(protocol)
        protocol.data_received(data)

    def _hand_over(self, protocol: asyncio.Protocol) -> None:
        self._transport.set_protocol(protocol)
        protocol.connection_made(self._transport)
