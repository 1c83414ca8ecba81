"""Tries of something that may be in vain: how often it was, and when it is tried again."""

from __future__ import annotations

from msx_core.service_errors import ServiceError, ServiceUnavailable, WorkerDied

AGAIN_AFTER, AGAIN_AT_MOST = 0.5, 10.0
"""Seconds until the second try, and at most: each wait is twice as long as the one before."""
MOST_DEATHS = 3
"""How often a request may end a worker: the reply of the last time is its own."""


class Tries:
    """Counts the tries of a request, or of a write to the disk."""

    __slots__ = ("deaths", "in_vain")

    def __init__(self) -> None:
        self.in_vain = self.deaths = 0
        """How often it was tried in vain, and how often it ended a worker."""

    def goes_on(self, error: ServiceError | None) -> bool:
        """Whether a request that ended with this error is tried again: the server had no room for it, or it has ended
        a worker, which it may do MOST_DEATHS times."""
        if isinstance(error, WorkerDied):
            self.deaths += 1
            return self.deaths < MOST_DEATHS
        return isinstance(error, ServiceUnavailable)

    def wait(self) -> float:
        """Seconds until the next try; this one was in vain."""
        self.in_vain += 1
        return float(min(AGAIN_AFTER * 2 ** min(self.in_vain - 1, 10), AGAIN_AT_MOST))
