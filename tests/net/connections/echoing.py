"""A protocol that says which it is, and what it was sent; an `AcceptLoop` with it."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from msx_net.connections.accept_loop import AcceptLoop
from msx_net.connections.connection import ON_ITS_WAY
from msx_net.connections.open_connections import ListenerConnections, OpenConnections


class Echoing(asyncio.Protocol):
    """A `Connection` that is idle, and answers each piece of data with its name and the data."""

    def __init__(self, name: bytes, connections: ListenerConnections) -> None:
        self.name, self._connections = name, connections
        self.idle_since: float | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self.transport = transport
        self.idle_since = asyncio.get_running_loop().time()
        self._connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._connections.discard(self)

    def data_received(self, data: bytes) -> None:
        self.transport.write(self.name + b" " + data)

    def forgive(self, seconds: float, now: float) -> None: ...

    def look(self, now: float) -> None: ...

    def shutdown(self, on_its_way: float = ON_ITS_WAY) -> None:
        self.transport.close()

    def abort(self) -> None:
        self.transport.abort()


class Accepting:
    """Loop as a test sees it: it connects, and looks at the connections of the server."""

    def __init__(self, loop: AcceptLoop, address: tuple[str, int], connections: ListenerConnections) -> None:
        self.loop, self.address, self.connections = loop, address, connections

    async def connect(self, tls: ssl.SSLContext | None = None) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        name = None if tls is None else "localhost"
        return await asyncio.open_connection(*self.address, ssl=tls, server_hostname=name)

    async def ask(self, data: bytes, size: int, tls: ssl.SSLContext | None = None) -> bytes:
        reader, writer = await self.connect(tls)
        writer.write(data)
        answer = await reader.readexactly(size)
        writer.close()
        await writer.wait_closed()
        return answer


def listening() -> socket.socket:
    sock = socket.create_server(("127.0.0.1", 0), backlog=512)
    sock.setblocking(False)
    return sock


@asynccontextmanager
async def accepting(
    tls: ssl.SSLContext | None = None,
    timeout: float = 10.0,
    connect: Callable[[ListenerConnections], asyncio.Protocol] = lambda connections: Echoing(b"echo", connections),
    of_server: OpenConnections | None = None,
    sock: socket.socket | None = None,
) -> AsyncIterator[Accepting]:
    """At the end its connections are aborted and its socket is closed."""
    sock = sock or listening()
    connections = ListenerConnections(of_server)
    loop = AcceptLoop([sock], lambda: connect(connections), connections, tls, timeout)
    loop.start()
    try:
        yield Accepting(loop, sock.getsockname(), connections)
    finally:
        if sock.fileno() >= 0:
            await loop.stop()
        await asyncio.sleep(0.01)
        for connection in list(connections):
            connection.abort()
        await connections.until_empty(5)
