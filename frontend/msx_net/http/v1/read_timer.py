"""How long a client takes to send a request."""

from __future__ import annotations

from msx_net.connections.connection import forgiven
from msx_net.http.v1.reader import Http1Reader


class ReadTimer:
    """Seconds in which the server was reading the head, or the body, that is not complete yet.

    It knows only the times at which it looks, so that a request costs it nothing, and is right to a look's distance.
    """

    def __init__(self, now: float) -> None:
        self._looked = self._accepted = now
        self._phase = 0, False
        self._seconds = 0.0

    def forgive(self, seconds: float, now: float) -> None:
        self._looked = forgiven(self._looked, seconds, now)
        self._accepted = forgiven(self._accepted, seconds, now)

    def look(self, now: float, reader: Http1Reader, *, paused: bool) -> float:
        """`paused`: the server does not read. The time of a connection's first head begins with the accept."""
        passed, self._looked = now - self._looked, now
        in_body = reader.request is not None and reader.request.head_complete
        phase = reader.begun, in_body
        if phase != self._phase:
            self._phase, self._seconds = phase, 0.0
        elif not paused:
            self._seconds += passed
        return now - self._accepted if reader.begun <= 1 and not in_body else self._seconds
