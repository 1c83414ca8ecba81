"""Looks at a queue while requests wait in it."""

import asyncio
import time
from typing import Protocol

from msx_frontend.queueing.answer_rate import AnswerRate

EXPIRY_LOOK = 0.25
"""Seconds between two looks."""


class WatchedQueue(Protocol):
    answered: float
    """Requests since the start."""

    @property
    def waiting(self) -> int:
        """Requests."""

    def expire(self) -> None:
        """Fail those that have waited for too long."""


class QueueWatch:
    """Expires requests, and learns how fast they are answered. While none waits there is no timer."""

    def __init__(self, queue: WatchedQueue) -> None:
        self._queue = queue
        self._loop = asyncio.get_running_loop()
        self._rate = AnswerRate()
        self._timer: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        """Requests may wait now. Idempotent."""
        if self._timer is None and self._queue.waiting:
            self._timer = self._loop.call_later(EXPIRY_LOOK, self.look)
            self._rate.sample(time.monotonic(), self._queue.answered)

    def look(self) -> None:
        self._timer = None
        self._queue.expire()
        self.begin()
        if self._timer is None:
            self._rate.pause(time.monotonic(), self._queue.answered)

    def seconds(self, at_once: int) -> float:
        """Until those that wait now are answered; 0 while the rate is not known. `at_once`: how many workers take."""
        return self._rate.seconds(time.monotonic(), self._queue.answered, self._queue.waiting, at_once)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
