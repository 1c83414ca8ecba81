"""Kills of workers of one model version while they load."""

from msx_frontend.workers.group_end import GroupEnd

FAILS = 3
"""Kills in a row from which on each counts as a load that failed."""


class KilledLoads:
    """Counts kills in a row, of all workers of a version: a load that succeeds or fails by itself ends the row."""

    def __init__(self) -> None:
        self._row = 0

    def loaded(self) -> None:
        self._row = 0

    def excuses(self, end: GroupEnd) -> bool:
        """Count the end of a load; return whether its worker starts again at once, as if it had not been tried."""
        self._row = self._row + 1 if end.killed else 0
        return 0 < self._row < FAILS
