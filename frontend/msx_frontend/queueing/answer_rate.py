"""How fast what waits is answered: for clients that are told when there may be room."""

from __future__ import annotations

from collections import deque

WINDOW = 30.0
"""Seconds that are looked back."""

SETTLED = 1.0
"""Seconds of looking before what is seen counts more than what was known."""


class AnswerRate:
    """Is shown the number of answers again and again while requests wait, so that pauses do not count.

    Times are `time.monotonic()` instants.
    """

    def __init__(self) -> None:
        self._looks: deque[tuple[float, int]] = deque()
        self._known: float | None = None

    def look(self, now: float, answered: int) -> None:
        """`answered` is the count of all that were ever answered."""
        looks = self._looks
        looks.append((now, answered))
        while looks[0][0] < now - WINDOW:
            looks.popleft()

    def rest(self, now: float, answered: int) -> None:
        """Nothing waits any more."""
        if self._looks:
            self._known = self._rate(now, answered)
            self._looks.clear()

    def seconds(self, now: float, answered: int, waiting: int, at_once: int) -> float:
        """Until `waiting` requests are answered, of which workers take `at_once`; 0 while nothing is known."""
        rate = self._rate(now, answered)
        if rate is None and self._looks:
            rate = at_once / max(now - self._looks[0][0], 1e-3)  # at most, since there was no answer
        return waiting / rate if rate else 0.0

    def _rate(self, now: float, answered: int) -> float | None:
        """Answers a second; None while nobody knows."""
        if not self._looks:
            return self._known
        since, before = self._looks[0]
        span, count = now - since, answered - before
        if self._known is not None and (span < SETTLED or not count):
            return self._known
        return count / span if count and span > 0 else None
