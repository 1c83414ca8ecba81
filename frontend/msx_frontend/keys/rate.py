"""How often something may be done: a steady rate, and as much at once as a second allows."""

from __future__ import annotations


class Rate:
    """The generic cell rate algorithm (ITU-T I.371): one number, no timer."""

    __slots__ = ("_due", "_slack", "_step", "per_second")

    def __init__(self, per_second: float) -> None:
        """Below 1 a second, one at a time."""
        self.per_second = per_second
        self._step = 1 / per_second
        self._slack = max(1 - self._step, 0.0) + 1e-9
        self._due = 0.0
        """When the next one is due if all come as steadily as they may."""

    def take(self, now: float) -> float:
        """0 when one more may be done at `now` (of a clock that is never set back), else the seconds until it may."""
        due = max(self._due, now)
        if due - now > self._slack:
            return due - now - self._slack
        self._due = due + self._step
        return 0.0
