"""Ranks that a frontend before this one has started, until they have told what they have: whether they go on."""

from msx_frontend.workers import heartbeat
from msx_protocol import Pong


class TakenOverRanks:
    """Rank 0 may be in a call of that frontend: from now on it has as long as any other. None may be silent for longer,
    nor for longer than an idle one may. Ranks that load have as long as the start may take."""

    def __init__(self, ranks: int, limit: float, now: float) -> None:
        """`limit`: seconds of a call (`responseTimeout`); moments are `time.monotonic()` instants."""
        self._limit = limit
        self._heard = dict.fromkeys(range(ranks), now)
        self._in_call_since: float | None = None
        """When rank 0 was first found in its call, or has last got on with it."""
        self._progress: int | None = None

    def ponged(self, rank: int, pong: Pong, now: float) -> None:
        self._heard[rank] = now
        if rank == 0:  # others are in a call while they warm up, too
            self._led(pong, now)

    def _led(self, pong: Pong, now: float) -> None:
        goes_on = self._in_call_since is None or pong.progress != self._progress
        self._progress = pong.progress
        if not pong.busy_seconds:
            self._in_call_since = None
        elif goes_on:
            self._in_call_since = now

    def is_stuck(self, now: float) -> bool:
        silent, since = now - min(self._heard.values()), self._in_call_since
        if since is not None and now - since > self._limit:
            return True
        return silent > max(self._limit, heartbeat.MISSED_HEARTBEAT)  # pings are seconds apart: a short limit ends none
