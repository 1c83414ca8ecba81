"""When a failed worker group starts again."""

import time
from collections.abc import Callable

# TorchServe's table, in s; the last one repeats.
_PAUSES = (0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 377, 610, 987, 1597)
_PROVEN = 60.0  # s of being ready, after which earlier failures are forgotten


class Backoff:
    """Counts the failures of one group in a row; `limit` is `maxRetryTimeoutInSec`, from the first of them."""

    def __init__(self, limit: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._limit = limit
        self._clock = clock
        self._failures = 0
        self._since = 0.0
        self._ready_since: float | None = None
        self._paused_since: float | None = None

    def pause(self) -> None:
        """Until `resume` the time does not count: the group waits for resources that others use."""
        self._paused_since = self._clock()

    def resume(self) -> None:
        if self._paused_since is not None:
            self._since += self._clock() - self._paused_since
            self._paused_since = None

    def ready(self) -> None:
        """The group has loaded its model."""
        self._ready_since = self._clock()

    def reset(self) -> None:
        """A good reply; called for each one, so it does next to nothing."""
        self._failures = 0

    def failed(self) -> float | None:
        """Seconds to wait before the next start, never beyond the limit; None: give up."""
        now = self._clock()
        if self._ready_since is not None and now - self._ready_since >= _PROVEN:
            self._failures = 0
        self._ready_since = None
        if self._failures == 0:
            self._since = now
        left = self._limit - (now - self._since)
        if left <= 0:
            return None
        pause = _PAUSES[min(self._failures, len(_PAUSES) - 1)]
        self._failures += 1
        return min(float(pause), left)
