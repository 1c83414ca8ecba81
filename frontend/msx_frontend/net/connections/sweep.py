"""Looks at all connections once a second."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from itertools import islice

from msx_frontend.net.connections.connection import Connection

log = logging.getLogger("msx.connections")

EVERY = 1.0
"""Seconds between two looks at a connection."""

AT_ONCE = 500
"""Connections that are looked at in one turn of the loop: about a tenth of a millisecond."""


class Sweep:
    """Runs while there are connections: a server without connections does nothing."""

    def __init__(self, connections: Callable[[], Iterator[Connection]]) -> None:
        self._connections = connections
        self._running = False

    def start(self) -> None:
        if not self._running:
            self._running = True
            self._loop = asyncio.get_running_loop()
            self._loop.call_later(EVERY, self._begin)

    def _begin(self) -> None:
        self._running = False
        self._look_at(self._connections())

    def _look_at(self, connections: Iterator[Connection]) -> None:
        now, some = self._loop.time(), list(islice(connections, AT_ONCE))
        if some:
            self.start()
        for connection in some:
            try:
                connection.look(now)
            except Exception:
                log.exception("a connection cannot be looked at")
        if len(some) == AT_ONCE:
            self._loop.call_soon(self._look_at, connections)
