"""How long something is waited for that is not there yet."""

import time

from msx_client.errors import (
    ConnectionLostError,
    DeadlineError,
    MsxError,
    NotFoundError,
    UnavailableError,
    UnreachableError,
)

FIRST, LONGEST = 0.02, 1.0
"""Seconds between two looks: each is half as long again as the last."""


class Patience:
    def __init__(self, timeout: float, *, absent: bool = False) -> None:
        """`timeout` in seconds. `absent`: what does not exist yet is waited for, too."""
        self._timeout = timeout
        self._end = time.monotonic() + timeout
        self._next = FIRST
        self._passing = (UnavailableError, UnreachableError, ConnectionLostError)
        self._absent = absent

    @property
    def left(self) -> float:
        """Seconds, 0 at least."""
        return max(self._end - time.monotonic(), 0.0)

    def pause(self, error: MsxError) -> float:
        """Seconds until the next look. Raises the error if it does not pass, DeadlineError when the time is over."""
        if not isinstance(error, self._passing) and not (self._absent and isinstance(error, NotFoundError)):
            raise error
        return self.next(error.message)

    def next(self, reason: str) -> float:
        """Raises DeadlineError, with the reason, when the time is over."""
        left = self._end - time.monotonic()
        if left <= 0:
            raise DeadlineError(f"Not ready after {self._timeout:g} s: {reason}")
        pause, self._next = min(self._next, left), min(1.5 * self._next, LONGEST)
        return pause
