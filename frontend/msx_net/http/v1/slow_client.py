"""Whether the client of a connection takes too long."""

from __future__ import annotations

from enum import Enum

from msx_core.service_errors import ServiceError
from msx_net.connections.connection import forgiven
from msx_net.connections.limits import ConnectionLimits
from msx_net.http.v1.errors import SlowHead, slow_body
from msx_net.http.v1.lingering import LONGEST
from msx_net.http.v1.reader import Http1Reader


class Close(Enum):
    """Ways to close a connection without a word to its client."""

    UNLESS_ASKED = 1
    """Nothing was asked so far."""
    AT_ONCE = 2
    """The request was answered, and the rest of its body is dropped."""


class SlowClient:
    """How long a client takes to send a request, and to read replies.

    It knows only the times at which it looks, so that a request costs it nothing, and is right to a look's distance.
    """

    def __init__(self, limits: ConnectionLimits, accepted: float) -> None:
        self._limits = limits
        self._looked = self._accepted = accepted
        self._phase = 0, False
        self._seconds = 0.0
        """Seconds that the server was reading the head, or the body, that is not complete yet."""
        self._unsent, self._last_taken = 0, 0.0

    def forgive(self, seconds: float, now: float) -> None:
        self._looked = forgiven(self._looked, seconds, now)
        self._accepted = forgiven(self._accepted, seconds, now)
        self._last_taken = forgiven(self._last_taken, seconds, now)

    def reads_nothing_for(self, now: float, unsent: int) -> float:
        """Seconds. `unsent`: bytes that the transport holds. Nothing is written between two looks."""
        if not unsent or not self._unsent or unsent < self._unsent:
            self._last_taken = now
        self._unsent = unsent
        return now - self._last_taken

    def _sends_for(self, now: float, reader: Http1Reader, *, paused: bool) -> float:
        """Seconds. `paused`: the server does not read. The time of a connection's first head begins with the accept."""
        passed, self._looked = now - self._looked, now
        in_body = reader.request is not None and reader.request.head_complete
        phase = reader.begun, in_body
        if phase != self._phase:
            self._phase, self._seconds = phase, 0.0
        elif not paused:
            self._seconds += passed
        return now - self._accepted if reader.begun <= 1 and not in_body else self._seconds

    def judge(
        self, now: float, reader: Http1Reader, *, paused: bool, in_turn: bool, answered: float | None
    ) -> ServiceError | Close | None:
        """Judge how long the request takes that is not complete. It is `in_turn` where no other is answered before it.
        `answered`: since when no reply is under way, None while one is."""
        seconds, request = self._sends_for(now, reader, paused=paused), reader.request
        if request is None or not request.head_complete:
            if answered is None or seconds < self._limits.request_head_timeout:
                return None
            return Close.UNLESS_ASKED if reader.begun == 0 else SlowHead(self._limits)
        if not in_turn or request.expects_continue:
            return None  # a client that was not told to go on, or that waits behind another request, does not send
        if answered is not None and now - answered >= LONGEST:
            return Close.AT_ONCE
        late = request.size < seconds * self._limits.min_request_body_rate
        if seconds > self._limits.request_body_grace and late:
            return slow_body(self._limits, request.size, seconds)
        return None
