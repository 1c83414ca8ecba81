"""How fast queued requests are answered: clients that are refused hear when there may be room."""

from collections import deque

WINDOW = 30.0
"""Seconds over which the rate is taken."""

SETTLED = 1.0
"""Seconds after which a new measurement replaces the rate that was known before."""


class AnswerRate:
    """Samples the number of answers while requests wait, so that pauses without requests do not count.

    Times are `time.monotonic()` instants.
    """

    def __init__(self) -> None:
        self._samples: deque[tuple[float, float]] = deque()
        self._known: float | None = None

    def sample(self, now: float, answered: float) -> None:
        """`answered`: how many requests have been answered since the start."""
        samples = self._samples
        samples.append((now, answered))
        while samples[0][0] < now - WINDOW:
            samples.popleft()

    def pause(self, now: float, answered: float) -> None:
        """The queue is empty: keep the rate until requests wait again."""
        if self._samples:
            self._known = self._rate(now, answered)
            self._samples.clear()

    def seconds(self, now: float, answered: float, waiting: int, at_once: int) -> float:
        """Until `waiting` requests are answered; 0 while the rate is not known. `at_once`: how many workers take."""
        rate = self._rate(now, answered)
        if rate is None and self._samples:
            rate = at_once / max(now - self._samples[0][0], 1e-3)  # at most, since there was no answer
        return waiting / rate if rate else 0.0

    def _rate(self, now: float, answered: float) -> float | None:
        """Answers a second; None while it is not known."""
        if not self._samples:
            return self._known
        since, before = self._samples[0]
        span, count = now - since, answered - before
        if self._known is not None and (span < SETTLED or count <= 0):
            return self._known
        return count / span if count > 0 and span > 0 else None
