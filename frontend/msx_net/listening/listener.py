"""One listening address: HTTP/1.1, and HTTP/2 where there is something to answer it."""

import asyncio
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from msx_net.connections.accept_loop import AcceptLoop, Connect
from msx_net.connections.limits import ConnectionLimits
from msx_net.connections.open_connections import ListenerConnections, OpenConnections
from msx_net.connections.wind_down import abort, shut_down, stop_accepting
from msx_net.http.direct import Direct
from msx_net.http.v1.connection import Http1Connection
from msx_net.http.v1.settings import Http1Settings
from msx_net.listening.address import Address
from msx_net.listening.bind import bind, kept_name
from msx_net.listening.kept import KEEPS_NONE, KeepsSockets
from msx_net.listening.protocol_choice import H2, HTTP1, ProtocolChoice
from msx_net.listening.uvicorn_server import UvicornServer
from msx_net.tls.listeners import ListenerTls


class Http2(Protocol):
    """Server of connections that speak HTTP/2."""

    def connect(self, connections: ListenerConnections) -> asyncio.Protocol:
        """The protocol of a new one, which adds itself to the connections, and discards itself."""

    async def stop(self) -> None:
        """End what is still done for connections that are gone."""


class ListenerContext:
    """State shared by all HTTP listeners of a server."""

    def __init__(
        self,
        limits: ConnectionLimits | None = None,
        connections: OpenConnections | None = None,
        kept: KeepsSockets = KEEPS_NONE,
    ) -> None:
        self.kept = kept
        self.limits = limits or ConnectionLimits()
        self.connections = connections or OpenConnections()
        self.uvicorn = UvicornServer()


class Listener:
    """Bound at once, so that a port that is taken is known before anything is started."""

    def __init__(
        self,
        name: str,
        address: Address,
        app: Any,
        tls: ListenerTls | None = None,
        direct: Direct | None = None,
        *,
        http2: Http2 | None = None,
        context: ListenerContext | None = None,
    ) -> None:
        """`tls` is used where the address says https; `direct` answers predictions past the app. Raises ListenError."""
        self.name = name
        context = context or ListenerContext()
        self._drop = partial(context.kept.drop, kept_name(name, address))
        self._socket = bind(name, address, context.kept)
        self.address = address if address.is_unix else address.with_port(self._socket.getsockname()[1])
        self._uvicorn, self._http2 = context.uvicorn, http2
        self._connections = ListenerConnections(context.connections, name)
        http = partial(Http1Connection, Http1Settings(direct, context.limits))
        self._app = context.uvicorn.served(app, http, self._connections)
        self._accepting = AcceptLoop(
            [self._socket],
            self._connect(http2, context.limits),
            self._connections,
            tls.context(*((H2, HTTP1) if http2 else (HTTP1,))) if tls and address.scheme == "https" else None,
            context.limits.tls_handshake_timeout,
        )
        self._started = False

    def _connect(self, http2: Http2 | None, limits: ConnectionLimits) -> Connect:
        http1, connections = self._app.protocol, self._connections
        if http2 is None:
            return http1
        return partial(
            ProtocolChoice, http1, partial(http2.connect, connections), connections, limits.request_head_timeout
        )

    async def start(self) -> None:
        await self._uvicorn.start()
        self._accepting.start()
        self._started = True

    async def stop(self, limit: float) -> None:
        """All that has connected is accepted, and what it has sent until now is answered; then there are no more
        requests. Those under way may end for `limit` seconds."""
        if self._started:
            self._started = False
            self._drop()
            await stop_accepting(self._accepting, self._connections)
            await shut_down(self._connections, limit)
            await abort(self._connections)
            await self._app.stop()
            if self._http2 is not None:
                await self._http2.stop()
            await self._uvicorn.stop()
        self.close()

    async def leave(self) -> None:
        """Let another process accept."""
        await stop_accepting(self._accepting, self._connections, leave=True)

    async def finish(self, limit: float) -> None:
        """Returns when no request is left of those that came before `leave`, or after `limit` seconds."""
        await shut_down(self._connections, limit)

    def close(self) -> None:
        self._accepting.close()
        if self.address.is_unix:
            Path(self.address.path).unlink(missing_ok=True)
