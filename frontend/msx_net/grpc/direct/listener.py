"""One gRPC listener over our own HTTP/2."""

import socket
from pathlib import Path

from msx_net.connections.accept_loop import AcceptLoop
from msx_net.connections.limits import ConnectionLimits
from msx_net.connections.listen import bind_unix, listen, open_all
from msx_net.connections.open_connections import ListenerConnections
from msx_net.connections.wind_down import abort, shut_down, stop_accepting
from msx_net.grpc.direct.blocks import HEADERS_TOO_LARGE
from msx_net.grpc.direct.port_calls import PortCalls
from msx_net.grpc.listen import MAX_HEADERS, GrpcListen, GrpcServed
from msx_net.http2.connection import Http2Protocol
from msx_net.http2.limits import Limits, windows
from msx_net.listening.bind import kept_name

CLOSING = 1.0
"""Seconds in which a client may read why its call was ended."""


class DirectListener:
    """A port of our own HTTP/2; with `tls` it speaks nothing else. `on_stop` ends calls that would not end by
    themselves."""

    def __init__(self, listen: GrpcListen, served: GrpcServed) -> None:
        self._listen, self.keys = listen, listen.keys
        self._tls = None if served.tls is None else served.tls.context("h2")
        self._handshake_timeout = served.limits.tls_handshake_timeout
        self._calls = PortCalls(served, listen.max_request_size, listen.largest_response)
        self._limits = _limits(listen, self._calls.largest, served.limits)
        self._connections = ListenerConnections(served.connections, listen.keys)
        self._kept, self._kept_name = served.kept, kept_name(listen.keys, listen.target(listen.port))
        self._accepting: AcceptLoop | None = None
        self.bound_port = 0

    @property
    def address(self) -> str:
        return self._listen.target(self.bound_port)

    async def start(self) -> None:
        try:
            sockets = await self._bind()
        except OSError as error:
            raise self._listen.refusal(error) from error
        self._accepting = AcceptLoop(sockets, self._connect, self._connections, self._tls, self._handshake_timeout)
        self._accepting.start()

    async def _bind(self) -> list[socket.socket]:
        """Raises OSError."""
        if self._listen.path:
            return [bind_unix(self._listen.path)]
        sockets = self._kept.find(self._kept_name)
        if not sockets:
            sockets = await open_all(self._listen.host, self._listen.port, listen)
            self._kept.keep(self._kept_name, sockets)
        for sock in sockets:
            sock.setblocking(False)
        self.bound_port = sockets[0].getsockname()[1]
        return sockets

    def _connect(self) -> Http2Protocol:
        connection, connections = self._calls.connection(), self._connections
        connection.protocol = Http2Protocol(connection.accept, self._limits, connections.discard, connections.add)
        return connection.protocol

    async def stop(self, grace: float) -> None:
        """Connections that had been made are served: their calls may end for `grace` seconds."""
        self._calls.end_watches()
        if self._accepting is not None:
            self._kept.drop(self._kept_name)
            await stop_accepting(self._accepting, self._connections)
            if self._listen.path:
                Path(self._listen.path).unlink(missing_ok=True)
        await shut_down(self._connections, grace)
        await self._calls.stop()
        await self._connections.until_empty(CLOSING)
        await abort(self._connections)

    async def leave(self, limit: float) -> None:
        """See `GrpcListener.leave`."""
        self._calls.end_watches()
        if self._accepting is not None:
            await stop_accepting(self._accepting, self._connections, leave=True)

    async def finish(self, limit: float) -> None:
        """See `GrpcListener.finish`."""
        await shut_down(self._connections, limit)


def _limits(listen: GrpcListen, largest: int, connections: ConnectionLimits) -> Limits:
    """`largest`: bytes of a message in its stream."""
    return Limits(
        **windows(largest),
        max_header_list=MAX_HEADERS,
        too_large=HEADERS_TOO_LARGE,
        **connections.http2,
        max_age=_seconds(listen.max_age),
        max_age_grace=_seconds(listen.max_age_grace),
    )


def _seconds(millis: int | None) -> float | None:
    return None if millis is None else millis / 1000
