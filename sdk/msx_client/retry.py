"""When a call is made again: only where nothing of it can have run."""

from msx_client.errors import MsxError, TooManyRequestsError, UnavailableError, UnreachableError

FIRST_PAUSE = 0.2
"""Seconds before an address that nobody answers at is tried again; then twice as long each time."""
LONGEST_PAUSE = 30.0


class Attempts:
    """Attempts of one call: `pause` says after which error and how many seconds it is made again."""

    def __init__(self, retries: int) -> None:
        self._left = retries
        self._next = FIRST_PAUSE

    def pause(self, error: MsxError) -> float | None:
        """None: the error is the result."""
        if self._left == 0:
            return None
        self._left -= 1
        if isinstance(error, UnreachableError):
            pause, self._next = self._next, min(2 * self._next, LONGEST_PAUSE)
            return pause
        if isinstance(error, UnavailableError | TooManyRequestsError) and error.retry_after is not None:
            return error.retry_after if error.retry_after <= LONGEST_PAUSE else None
        return None
