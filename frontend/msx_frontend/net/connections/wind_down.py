"""The end of a listener's connections."""

from __future__ import annotations

import asyncio

from msx_frontend.net.connections.open_connections import ListenerConnections

READS = 4
"""Turns of the loop in which a connection that was just accepted is made, and what stands in its socket is read."""

LOOK_EVERY = 0.05
"""Seconds between two looks at connections that do not end at once."""

CLOSING = 1.0
"""Seconds that aborted connections have to be gone."""


async def read_once_more() -> None:
    """What stands in the sockets of connections is with their protocols when this returns."""
    for _ in range(READS):
        await asyncio.sleep(0)


async def shut_down(connections: ListenerConnections, limit: float) -> None:
    """Idle connections end, and the others with their last reply. Returns when all are gone, or after `limit`
    seconds."""
    loop = asyncio.get_running_loop()
    over = loop.time() + limit
    while True:
        for connection in list(connections):  # there are others than before: handshakes end in connections
            connection.shutdown()
        left = over - loop.time()
        if await connections.until_empty(max(0.0, min(LOOK_EVERY, left))) or left <= 0:
            return


async def abort(connections: ListenerConnections) -> None:
    for connection in list(connections):
        connection.abort()
    await connections.until_empty(CLOSING)
