"""Heartbeats of silent streams, by which their clients, and proxies on the way, see that they are open."""

from __future__ import annotations

from collections.abc import Callable, Iterable

COMMENT = b": \n\n"
"""A comment of server-sent events, and an empty line (WHATWG HTML, 9.2.6). It is no event, and no part of the next one
for clients that split the stream at empty lines."""

_BOUNDARIES = (b"\n\n", b"\n\r\n", b"\r\r")
_LONGEST = 4
"""Bytes of a chunk that may be of a boundary."""


def is_event_stream(headers: Iterable[tuple[str, str]]) -> bool:
    """Whether a reply with these headers consists of server-sent events."""
    return any(
        name.lower() == "content-type" and value.lower().startswith("text/event-stream") for name, value in headers
    )


class EventTail:
    """The last two chunks of a stream of events, of which none is empty."""

    __slots__ = ("before", "last")

    def __init__(self) -> None:
        self.before: bytes | bytearray = b""
        self.last: bytes | bytearray = b""

    def sent(self, data: bytes) -> None:
        self.before, self.last = self.last, data

    @property
    def between_events(self) -> bool:
        """No event has begun that has not ended, so that a comment or an event may stand here."""
        tail = self.before[-_LONGEST:] + self.last[-_LONGEST:]
        return not tail or tail.endswith(_BOUNDARIES)


class StreamHeartbeat(EventTail):
    """Calls `beat` once one stream has sent nothing for `after` seconds, and again after as many.

    A chunk costs the noting of it; the time is taken by `look`, about once a second.
    """

    __slots__ = ("_after", "_beat", "_open", "_seen", "_since")

    def __init__(self, beat: Callable[[], None], after: float, now: float, open: set[StreamHeartbeat]) -> None:
        """`now` is `loop.time()`; `open` are those that are looked at, of which it is one until `close`."""
        super().__init__()
        self._beat: Callable[[], None] | None = beat
        self._after, self._since, self._open = after, now, open
        self._seen = self.last
        """The last chunk at the last look."""

    def look(self, now: float) -> None:
        if self.last is not self._seen:
            self._since = now
            self.before = self.before[-_LONGEST:]
            # No chunk is this object, nor is a large one kept.
            self._seen = self.last = bytearray(self.last[-_LONGEST:])
        elif now - self._since >= self._after and self._beat is not None and self.between_events:
            self._since = now
            self._beat()

    def forgive(self, seconds: float, now: float) -> None:
        """A stream that was silent because the server was held up was silent nevertheless."""

    def close(self) -> None:
        """The stream is over. Idempotent."""
        self._beat = None  # ends the reference cycle of the two
        self._open.discard(self)


CLOSED = StreamHeartbeat(lambda: None, 0.0, 0.0, set())
"""The heartbeat of what is no stream, or none yet."""
CLOSED.close()
