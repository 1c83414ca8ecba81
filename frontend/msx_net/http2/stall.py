"""A client that takes nothing of what waits for it."""

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar

from msx_net.connections.connection import forgiven

Blocked = TypeVar("Blocked")
"""Kind of thing that may be blocked: a stream."""


class StallWatch(Generic[Blocked]):
    """Knows the streams that are blocked, and the transport where it is; `look` is called about once a second.

    `on_stalled` is told the stream of which the client took nothing for `limit` seconds; None is the connection itself.
    `unsent` says how many bytes the transport holds.
    """

    __slots__ = ("_buffered", "_limit", "_loop", "_on_stalled", "_paused_since", "_streams", "_unsent")

    def __init__(self, limit: float, unsent: Callable[[], int], on_stalled: Callable[[Blocked | None], None]) -> None:
        self._limit = limit
        self._unsent = unsent
        self._on_stalled = on_stalled
        self._loop = asyncio.get_running_loop()
        self._streams: dict[Blocked, float] = {}
        """Blocked ones, and since when they have sent nothing."""
        self._paused_since: float | None = None
        self._buffered = 0

    def moved(self, stream: Blocked) -> None:
        """A stream is blocked that was not, or has sent something."""
        self._streams[stream] = self._loop.time()

    def done(self, stream: Blocked) -> None:
        """Nothing of it waits any more."""
        self._streams.pop(stream, None)

    def paused(self) -> None:
        self._paused_since, self._buffered = self._loop.time(), self._unsent()

    def resumed(self) -> None:
        self._paused_since = None
        self._streams = dict.fromkeys(self._streams, self._loop.time())

    def forgive(self, seconds: float, now: float) -> None:
        """See `Connection`."""
        self._streams = {stream: forgiven(since, seconds, now) for stream, since in self._streams.items()}
        if self._paused_since is not None:
            self._paused_since = forgiven(self._paused_since, seconds, now)

    def look(self, now: float) -> None:
        if self._paused_since is not None:
            self._look_at_transport(now, self._paused_since)
        else:
            for stream in [one for one, since in self._streams.items() if now - since >= self._limit]:
                self.done(stream)
                self._on_stalled(stream)

    def _look_at_transport(self, now: float, since: float) -> None:
        """Where the transport takes nothing, no stream is to blame."""
        unsent = self._unsent()
        if unsent < self._buffered:
            self._paused_since, self._buffered = now, unsent
        elif now - since >= self._limit:
            self._paused_since = None
            self._on_stalled(None)
