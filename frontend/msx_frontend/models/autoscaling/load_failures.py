"""Loads that failed where no worker is left: how long no request starts another."""

from msx_frontend.public_text import public_text
from msx_frontend.workers.group_end import GroupEnd

FIRST, LONGEST = 1.0, 60.0
"""Seconds of the pause after the first failure, and the longest; each is twice the one before."""


class LoadFailures:
    """Load failures of a version that starts a worker for the first request. Instants are the autoscaling timer's."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._count = 0
        self._until: float | None = None
        self.refusal = ""
        """Message to clients meanwhile; "" while a request may start a worker."""

    def failed(self, now: float, end: GroupEnd) -> None:
        pause = min(FIRST * 2**self._count, LONGEST)
        self._count, self._until = min(self._count + 1, 16), now + pause
        self.refusal = (
            f'Model "{self._name}" has no worker to serve inference request: its last load failed, and the first '
            f"request after a pause of {pause:g} s starts it again: {public_text(end.public_reason)}"
        )

    def loaded(self) -> None:
        self._count = 0
        self._clear()

    def over(self, now: float) -> bool:
        """Whether a pause ends now."""
        if self._until is None or now < self._until:
            return False
        self._clear()
        return True

    def _clear(self) -> None:
        self._until, self.refusal = None, ""
