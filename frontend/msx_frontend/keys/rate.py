"""A rate limit: a steady rate, with bursts of the number that one second allows."""


class Rate:
    """The generic cell rate algorithm (ITU-T I.371): one number, no timer."""

    __slots__ = ("_due", "_slack", "_step", "per_second")

    def __init__(self, per_second: float) -> None:
        """Allow one at a time where the rate is below 1 per second."""
        self.per_second = per_second
        self._step = 1 / per_second
        self._slack = max(1 - self._step, 0.0) + 1e-9
        self._due = 0.0
        """When the next request is due at the steady rate."""

    def take(self, now: float) -> float:
        """0 when one more is allowed at `now` (of a monotonic clock), else the seconds until it is."""
        due = max(self._due, now)
        if due - now > self._slack:
            return due - now - self._slack
        self._due = due + self._step
        return 0.0
