"""The time that a slow reader has to take something."""

import asyncio
from collections.abc import Callable

STEP = 1.0
"""Seconds at a time in which a reader is waited for: one that is as late again was not the reader's, but the server's,
which was held up, and does not count."""


class ReaderPatience:
    """Calls `over` once after so many seconds, unless it is cancelled."""

    def __init__(self, seconds: float, over: Callable[[], None]) -> None:
        self._over = over
        self._loop = asyncio.get_running_loop()
        self._wait(seconds)

    def _wait(self, seconds: float) -> None:
        step = min(seconds, STEP)
        self._timer = self._loop.call_later(step, self._waited, seconds, step)

    def _waited(self, seconds: float, step: float) -> None:
        if self._loop.time() - self._timer.when() >= STEP:
            self._wait(seconds)
        elif seconds > step:
            self._wait(seconds - step)
        else:
            self._over()

    def cancel(self) -> None:
        self._timer.cancel()
