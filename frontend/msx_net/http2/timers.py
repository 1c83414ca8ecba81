"""The times of one connection."""

import asyncio
from collections.abc import Callable


class Timers:
    """All end with the connection."""

    __slots__ = ("_handles", "_loop")

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._handles: list[asyncio.TimerHandle] = []

    def after(self, seconds: float | None, do: Callable[[], None]) -> None:
        """None is never."""
        if seconds is not None:
            self._handles.append(self._loop.call_later(seconds, do))

    def stop(self) -> None:
        while self._handles:
            self._handles.pop().cancel()
