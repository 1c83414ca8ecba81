"""Looks at all connections once a second."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice

from msx_frontend.net.connections import turns
from msx_frontend.net.connections.connection import Connection

log = logging.getLogger("msx.connections")

EVERY = 1.0
"""Seconds between two looks at a connection."""

STALL = 1.0
"""Seconds by which a look is late where the server was held up: a stopped process, a machine without a free core."""

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
            self._due = self._loop.time() + EVERY
            self._loop.call_later(EVERY, self._begin)

    def _begin(self) -> None:
        """Read what stands in sockets before anybody's time is judged."""
        late = self._loop.time() - self._due
        turns.after_others(self._loop, partial(self._look_at_all, late if late >= STALL else 0.0))

    def _look_at_all(self, late: float) -> None:
        self._running = False
        self._look_at(self._connections(), late)

    def _look_at(self, connections: Iterator[Connection], late: float) -> None:
        now, some = self._loop.time(), list(islice(connections, AT_ONCE))
        if some:
            self.start()
        for connection in some:
            try:
                if late:
                    connection.forgive(late, now)
                connection.look(now)
            except Exception:
                log.exception("a connection cannot be looked at")
        if len(some) == AT_ONCE:
            self._loop.call_soon(self._look_at, connections, late)
