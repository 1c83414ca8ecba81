"""How many lines of a model run beside its clients' requests: fewer where these had to wait for lines."""

from __future__ import annotations

import math

MOST_HELD = 1 / 200
"""How many of the clients' requests may wait for a line: so few that their p99 does not tell."""
OF_CROWD = 0.5
"""Where more of them wait for each other, so many of these may wait for a line."""
QUIET_LINES, QUIET_AT_MOST = 500, 300.0
"""A model of which clients ask nothing for as long as so many lines take, or for so many seconds, has nothing else to
do than lines."""
LONGEST = 900.0
"""Seconds after which a lost place comes back, however few clients ask meanwhile: else one that asks each minute kept
lines from running for hours."""
NEWEST = 0.1
"""Weight of the newest line in the time that one takes."""


class LineShare:
    """Part of batch_share that lines have now. A request that waits for a line costs them a place, and others give it
    back, so many that few wait; where few clients ask, a quiet time does, or LONGEST."""

    def __init__(self) -> None:
        self._part = 1.0
        self._answered = self._lines = 0.0
        """The clients' requests that were answered up to the last look, and the lines."""
        self._asked = -QUIET_AT_MOST
        """When a request of a client was seen last."""
        self._lost = 0.0
        """When the last place was lost, or came back since so much time had passed."""
        self._seconds = 0.0
        """Seconds that a line takes."""
        self._crowd = self._looked = 0.0
        """Part of the time, up to the last look, in which clients' requests leave no place free."""

    def of(self, places: int) -> int:
        """How many of these places lines may have now."""
        return int(self._part * places + 1e-6)

    def look(self, now: float, answered: float, places: int, *, is_asked: bool, is_crowded: bool) -> None:
        """`answered`: requests of the model, and lines; `is_asked`: some that are no lines wait, or run, `is_crowded`:
        so many that no place is free."""
        clients = answered - self._lines
        more = max(clients - self._answered, 0.0)
        self._answered = clients
        self._part = min(self._part + more * max(MOST_HELD, OF_CROWD * self._crowd / places), 1.0)
        self._crowd += (is_crowded - self._crowd) * -math.expm1((self._looked - now) / self._quiet)
        self._looked = now
        if is_asked or more:
            self._asked = now
        if now - self._asked >= self._quiet:
            self._part = 1.0
        if now - self._lost >= LONGEST:
            self._lost, self._part = now, min(self._part + 1 / places, 1.0)

    def ended(self, now: float, seconds: float, places: int, *, is_held: bool) -> None:
        """A line has ended, which took so long; `is_held`: a client waits for its place."""
        self._lines += 1
        self._seconds += (seconds - self._seconds) * (NEWEST if self._seconds else 1.0)
        if is_held:
            self._asked = now
            self._lost, self._part = now, max(self._part - 1 / places, 0.0)

    @property
    def _quiet(self) -> float:
        """Seconds."""
        return min(max(QUIET_LINES * self._seconds, 1.0), QUIET_AT_MOST)
