"""Errors of the ranks of one group while they load."""

import asyncio
from collections.abc import Callable

from msx_frontend.workers.group_end import GroupEnd

PATIENCE = 1.0
"""Seconds in which the end of another rank may be told, which may be the cause of an error."""


class LoadErrors:
    """Holds the first error of a group of several ranks back for a moment: a rank that was killed breaks the
    collectives of the others, whose errors arrive before its end."""

    def __init__(self, ranks: int, end: Callable[[GroupEnd], object]) -> None:
        self._ranks, self._end = ranks, end
        self._failed: dict[int, GroupEnd] = {}
        self._timer: asyncio.TimerHandle | None = None

    def failed(self, rank: int, end: GroupEnd) -> None:
        self._failed[rank] = end
        if len(self._failed) == self._ranks:
            self._end(next(iter(self._failed.values())))
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(PATIENCE, self._end, end)

    def explains(self, rank: int) -> bool:
        """Whether the rank exits because of its error."""
        return rank in self._failed

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
