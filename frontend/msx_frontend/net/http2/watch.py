"""What has taken too long on one connection, seen by looking at it once a second."""

from __future__ import annotations

from collections.abc import Callable

from msx_frontend.net.http2.frames import PING, frame
from msx_frontend.net.http2.slow_requests import SlowRequests
from msx_frontend.net.http2.streams import Streams

_ARE_YOU_THERE = frame(PING, 0, 0, b"are you?")


class Watch:
    """Asks a silent client whether it is there, and ends the connection of one that is not, that does not begin, or
    that has had no stream for long. `abort` ends it at once, `shutdown` with GOAWAY.
    """

    __slots__ = (
        "_abort",
        "_asked",
        "_began",
        "_heard",
        "_last",
        "_limits",
        "_requests",
        "_shutdown",
        "_streams",
        "idle_since",
    )

    def __init__(
        self, streams: Streams, now: float, *, abort: Callable[[], None], shutdown: Callable[[], None]
    ) -> None:
        self._limits, self._streams = streams.limits, streams
        self._abort, self._shutdown = abort, shutdown
        self._requests = SlowRequests(streams, now)
        self._began = self._heard = now
        self._asked: float | None = None
        """When PING was sent that nothing has answered."""
        self._last = 0
        self.idle_since = now
        """When there was a stream for the last time, as far as looks know."""

    def look(self, now: float, *, heard: bool, block: int, partial: tuple[int, int, int]) -> None:
        """`heard`: something has come since the last look; for the others see `SlowRequests`.

        Raises ConnectionFault.
        """
        if heard:
            self._heard, self._asked = now, None
        if self._streams.open or self._streams.last != self._last:
            self.idle_since, self._last = now, self._streams.last
        self._requests.look(now, block, partial)
        self._ask(now)
        limit = self._limits.idle_timeout
        if limit is not None and now - self.idle_since >= limit:
            self._shutdown()

    def look_at_beginning(self, now: float) -> None:
        """The client has not said its preface and its SETTINGS."""
        if now - self._began >= self._limits.head_timeout:
            self._abort()

    def _ask(self, now: float) -> None:
        if self._asked is not None:
            if now - self._asked >= self._limits.ping_timeout:
                self._abort()
        elif now - self._heard >= self._limits.ping_interval:
            self._asked = now
            self._streams.output.put(_ARE_YOU_THERE)
