"""One timer for all model versions whose workers follow the load. Without any it does not run."""

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Protocol

INTERVAL = 0.5
"""Seconds. A queue that stays is seen at the second look, so that more workers are decided on within `upDelay` and
twice this time."""

log = logging.getLogger("msx.autoscaling")


class Looks(Protocol):
    def look(self, now: float) -> None:
        """Decide, and carry it out, at this instant of the timer's clock."""


class AutoscalingTimer:
    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._watched: dict[Looks, None] = {}
        self._next: asyncio.TimerHandle | None = None
        self._soon: dict[Looks, asyncio.Handle] = {}

    @property
    def runs(self) -> bool:
        return self._next is not None

    def add(self, one: Looks) -> None:
        """Idempotent."""
        self._watched[one] = None
        if self._next is None:
            self._next = asyncio.get_running_loop().call_later(INTERVAL, self._tick)

    def discard(self, one: Looks) -> None:
        self._watched.pop(one, None)
        if (soon := self._soon.pop(one, None)) is not None:
            soon.cancel()
        if not self._watched and self._next is not None:
            self._next.cancel()
            self._next = None

    def wake(self, one: Looks) -> None:
        """It looks at the end of this turn of the loop: a request waits, and there is no worker."""
        if one in self._watched and one not in self._soon:
            self._soon[one] = asyncio.get_running_loop().call_soon(self._look_soon, one)

    def look(self) -> None:
        """All of them, now. What goes wrong with one says nothing about the others."""
        for one in list(self._watched):
            self._look(one)

    def _tick(self) -> None:
        self._next = asyncio.get_running_loop().call_later(INTERVAL, self._tick)
        self.look()

    def _look_soon(self, one: Looks) -> None:
        del self._soon[one]
        self._look(one)

    def _look(self, one: Looks) -> None:
        try:
            one.look(self._clock())
        except Exception:
            log.exception("the number of workers could not be decided")
