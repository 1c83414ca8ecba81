"""Timeouts of one connection, checked about once a second."""

from collections.abc import Callable

from msx_net.connections.connection import forgiven
from msx_net.http2.frames import PING, frame
from msx_net.http2.slow_requests import SlowRequests
from msx_net.http2.streams import Streams

_ARE_YOU_THERE = frame(PING, 0, 0, b"are you?")


class Watch:
    """Asks a silent client whether it is there, and ends the connection of one that is not, that does not begin, or
    that has had no stream for long. `abort` ends it at once, `shutdown` with GOAWAY.
    """

    __slots__ = (
        "_abort",
        "_began",
        "_heard",
        "_last",
        "_left",
        "_limits",
        "_looked",
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
        self._looked = now
        self._left: float | None = None
        """Seconds that the client still has to answer PING; None where it need not."""
        self._last = 0
        self.idle_since = now
        """When there was a stream for the last time, as far as looks know."""

    def forgive(self, seconds: float, now: float) -> None:
        """See `Connection`."""
        self._began = forgiven(self._began, seconds, now)
        self._heard = forgiven(self._heard, seconds, now)
        self._looked = forgiven(self._looked, seconds, now)
        self.idle_since = forgiven(self.idle_since, seconds, now)
        self._requests.forgive(seconds, now)

    def look(self, now: float, *, heard: bool, block: int, partial: tuple[int, int, int]) -> None:
        """`heard`: something has come since the last look; for the others see `SlowRequests`.

        Raises ConnectionFault.
        """
        if heard:
            self._heard, self._left = now, None
        if self._streams.open or self._streams.last != self._last:
            self.idle_since, self._last = now, self._streams.last
        self._requests.look(now, block, partial)
        self._ask(now, now - self._looked)
        self._looked = now
        limit = self._limits.idle_timeout
        if limit is not None and now - self.idle_since >= limit:
            self._shutdown()

    def look_at_beginning(self, now: float) -> None:
        """The client has not said its preface and its SETTINGS."""
        if now - self._began >= self._limits.head_timeout:
            self._abort()

    def _ask(self, now: float, passed: float) -> None:
        if self._left is not None:
            self._left -= passed
            if self._left <= 0:
                self._abort()
        elif now - self._heard >= self._limits.ping_interval:
            self._left = self._limits.ping_timeout
            self._streams.output.put(_ARE_YOU_THERE)
