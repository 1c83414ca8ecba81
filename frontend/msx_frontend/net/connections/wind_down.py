"""The end of a listener's connections."""

from __future__ import annotations

import asyncio

from msx_frontend.net.connections.open_connections import ListenerConnections

READS = 4
"""Turns of the loop in which a connection that was just accepted is made, and what stands in its socket is read."""

LOOK_EVERY = 0.05
"""Seconds between two looks at connections that do not end at once."""

CLOSING = 1.0
"""Seconds in which a connection may end that was told to end at once."""


async def read_once_more() -> None:
    """What stands in the sockets of connections is with their protocols when this returns."""
    for _ in range(READS):
        await asyncio.sleep(0)


async def shut_down(connections: ListenerConnections, limit: float) -> None:
    """Idle connections end, and the others with their last reply; after `limit` seconds what is left is aborted."""
    loop = asyncio.get_running_loop()
    over = loop.time() + limit
    while connections and (left := over - loop.time()) > 0:
        for connection in list(connections):  # which has others than before: handshakes end in connections
            connection.shutdown()
        await connections.until_empty(min(LOOK_EVERY, left))
    for connection in list(connections):
        connection.abort()
    await connections.until_empty(CLOSING)
