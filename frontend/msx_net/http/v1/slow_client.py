"""Whether the client of a connection takes too long."""

from __future__ import annotations

from enum import Enum

from msx_frontend.errors import ServiceError
from msx_net.connections.limits import ConnectionLimits
from msx_net.http.v1.errors import SlowHead, slow_body
from msx_net.http.v1.lingering import LONGEST
from msx_net.http.v1.read_timer import ReadTimer
from msx_net.http.v1.reader import Http1Reader
from msx_net.http.v1.write_timer import WriteTimer


class Close(Enum):
    """How a connection ends about which its client hears nothing."""

    UNLESS_ASKED = 1
    """Nothing was asked so far."""
    AT_ONCE = 2
    """The request was answered, and the rest of its body is dropped."""


class SlowClient:
    """The times of one client. They know only the instants at which they are looked at."""

    def __init__(self, limits: ConnectionLimits, accepted: float) -> None:
        self._limits = limits
        self._reading, self._unread_replies = ReadTimer(accepted), WriteTimer()

    def forgive(self, seconds: float, now: float) -> None:
        self._reading.forgive(seconds, now)
        self._unread_replies.forgive(seconds, now)

    def reads_nothing_for(self, now: float, unsent: int) -> float:
        """Seconds; `unsent` are the bytes that wait for it."""
        return self._unread_replies.look(now, unsent)

    def judge(
        self, now: float, reader: Http1Reader, *, paused: bool, in_turn: bool, answered: float | None
    ) -> ServiceError | Close | None:
        """Judge how long the request takes that is not complete. It is `in_turn` where no other is answered before it.
        `answered`: since when no reply is under way, None while one is."""
        seconds, request = self._reading.look(now, reader, paused=paused), reader.request
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
