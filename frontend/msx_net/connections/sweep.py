"""Looks at all connections, or all streams, about once a second."""

import asyncio
import logging
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from typing import Protocol

from msx_net.connections import turns

log = logging.getLogger("msx.connections")

EVERY = 1.0
"""Seconds between two looks at a connection."""

STALL = 1.0
"""Seconds by which a look is late where the server was held up: a stopped process, a machine without a free core."""

AT_ONCE = 500
"""Connections that are looked at in one turn of the loop: about a tenth of a millisecond."""


class Looked(Protocol):
    """A connection or a stream, which is looked at with `loop.time()`."""

    def forgive(self, seconds: float, now: float) -> None: ...

    def look(self, now: float) -> None: ...


class Sweep:
    """Runs while there is something to look at: a server without connections does nothing."""

    def __init__(self, all: Callable[[], Iterator[Looked]], every: float, at_once: int = AT_ONCE) -> None:
        """`every`: seconds between two looks; `at_once`: how many are looked at in one turn of the loop."""
        self._all, self._every, self._at_once = all, every, at_once
        self._running = False

    def start(self) -> None:
        if not self._running:
            self._running = True
            self._loop = asyncio.get_running_loop()
            self._due = self._loop.time() + self._every
            self._loop.call_later(self._every, self._begin)

    def _begin(self) -> None:
        """Read what stands in sockets before anybody's time is judged."""
        late = self._loop.time() - self._due
        turns.after_others(self._loop, partial(self._look_at_all, late if late >= STALL else 0.0))

    def _look_at_all(self, late: float) -> None:
        self._running = False
        self._look_at(self._all(), late)

    def _look_at(self, left: Iterator[Looked], late: float) -> None:
        now, some = self._loop.time(), list(islice(left, self._at_once))
        if some:
            self.start()
        for one in some:
            try:
                if late:
                    one.forgive(late, now)
                one.look(now)
            except Exception:
                log.exception("a connection or a stream cannot be looked at")
        if len(some) == self._at_once:
            self._loop.call_soon(self._look_at, left, late)
