"""Pings the ranks of a ready group, and finds one that has been silent for too long."""

import asyncio
import time
from collections.abc import Callable

from msx_protocol import Ping, encode_frame
from msx_protocol.heartbeat import BEFORE, FIRST

HEARTBEAT = 1.0
MISSED_HEARTBEAT = 5.0
"""Seconds without a message after which a rank counts as silent."""


class Heartbeat:
    """Once a beat: `judge(now)`, then the next ping, unless it was stopped.

    After a late beat `judge` is not called: the server itself had stopped (frozen, or its machine asleep), and what the
    ranks sent meanwhile is still unread in their sockets.
    """

    def __init__(self, ranks: int, ping: Callable[[bytes], None], judge: Callable[[float], None]) -> None:
        self._ping = ping
        self._judge = judge
        self._loop = asyncio.get_running_loop()
        self.last_heard = dict.fromkeys(range(ranks), time.monotonic())
        """Moment at which each rank last said something: a `time.monotonic()` instant."""
        self._next = BEFORE
        self._sent = 0.0
        self._tick: asyncio.TimerHandle | None = None
        self._stopped = False

    def start(self, first: int = FIRST) -> None:
        """Begin, or begin anew, with a ping of this number."""
        now = time.monotonic()
        self.last_heard.update((rank, now) for rank in self.last_heard)
        self._cancel()
        self._next = first
        self._beat()

    def stop(self) -> None:
        self._stopped = True
        self._cancel()

    def _cancel(self) -> None:
        if self._tick is not None:
            self._tick.cancel()

    def silent(self, now: float) -> int | None:
        """The rank that has been silent for longest, if that is more than MISSED_HEARTBEAT."""
        rank = min(self.last_heard, key=self.last_heard.__getitem__)
        return rank if now - self.last_heard[rank] > MISSED_HEARTBEAT else None

    def _beat(self) -> None:
        self._sent = time.monotonic()
        self._ping(encode_frame(Ping(self._next)))
        self._next += self._next != BEFORE
        self._tick = self._loop.call_later(HEARTBEAT, self._due)

    def _due(self) -> None:
        now = time.monotonic()
        if now - self._sent < HEARTBEAT + MISSED_HEARTBEAT / 2:
            self._judge(now)
        if not self._stopped:
            self._beat()
