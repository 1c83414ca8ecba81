"""Ranks that a frontend before this one has started, until they have told what they have: whether they go on."""

from msx_protocol import Pong


class TakenOverRanks:
    """Rank 0 may be in a call of that frontend: from now on it has as long as any other. None may be silent for longer.
    Ranks that load have as long as the start may take."""

    def __init__(self, ranks: int, limit: float, now: float) -> None:
        """`limit`: seconds of a call (`responseTimeout`); moments are `time.monotonic()` instants."""
        self._limit = limit
        self._went_on = dict.fromkeys(range(ranks), now)
        self._progress: int | None = None

    def ponged(self, rank: int, pong: Pong, now: float) -> None:
        in_call = rank == 0 and pong.busy_seconds > 0  # others are in one while they warm up, too
        if not in_call or pong.progress != self._progress:
            self._went_on[rank] = now
        if rank == 0:
            self._progress = pong.progress

    def is_stuck(self, now: float) -> bool:
        return now - min(self._went_on.values()) > self._limit
