"""The end of a listener's connections."""

import asyncio

from msx_net.connections.accept_loop import AcceptLoop
from msx_net.connections.connection import LEAVING, ON_ITS_WAY, may_be_asked
from msx_net.connections.open_connections import ListenerConnections

READS = 4
"""Turns of the loop in which a connection that was just accepted is made, and what stands in its socket is read."""

LOOK_EVERY = 0.05
"""Seconds between two looks at connections that do not end at once."""

CLOSING = 1.0
"""Seconds that aborted connections have to be gone."""


async def stop_accepting(accepting: AcceptLoop, connections: ListenerConnections, *, leave: bool = False) -> None:
    """When this returns, all that has connected is accepted, and what stands in sockets is with its protocol.

    `leave`: another process accepts those that wait.
    """
    connections.ending = True
    connections.on_its_way = LEAVING if leave else ON_ITS_WAY
    now = asyncio.get_running_loop().time()
    for connection in list(connections):
        if (since := connection.idle_since) is None or may_be_asked(since, now, connections.on_its_way):
            connection.shutdown(connections.on_its_way)  # which tells clients with the next reply
    if leave:
        accepting.leave()
    else:
        await accepting.stop()
    for _ in range(READS):
        await asyncio.sleep(0)


async def shut_down(connections: ListenerConnections, limit: float) -> None:
    """Idle connections end, and the others with their last reply. Returns when all are gone, or after `limit`
    seconds."""
    loop = asyncio.get_running_loop()
    over = loop.time() + limit
    while True:
        for connection in list(connections):
            connection.shutdown(connections.on_its_way)
        left = over - loop.time()
        if await connections.until_empty(max(0.0, min(LOOK_EVERY, left))) or left <= 0:
            return


async def abort(connections: ListenerConnections) -> None:
    for connection in list(connections):
        connection.abort()
    await connections.until_empty(CLOSING)
