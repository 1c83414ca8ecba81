"""How much of a streamed reply may be sent before its client has taken some of it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress

UNLIMITED = 1 << 62


class ReplyCredit:
    """One thread at a time sends; another one grants. A chunk is sent whole once any credit is left.

    Whoever waits calls `watch`, then looks at `spent`: a grant sets the limit, then calls those who watch, so that none
    is missed.
    """

    __slots__ = ("_watchers", "limit", "sent")

    def __init__(self, limit: int) -> None:
        """`limit`: bytes of all chunks of the reply."""
        self.limit, self.sent = limit, 0
        self._watchers: list[Callable[[], None]] = []

    @property
    def spent(self) -> bool:
        """Whoever would send the next chunk has to wait."""
        return self.sent >= self.limit

    def grant(self, limit: int) -> None:
        """A limit that is not above the last one changes nothing."""
        self.limit = max(limit, self.limit)
        for call in tuple(self._watchers):
            call()

    def lift(self) -> None:
        """Nobody takes the reply any more: nothing waits."""
        self.grant(UNLIMITED)

    def watch(self, call: Callable[[], None]) -> None:
        self._watchers.append(call)

    def unwatch(self, call: Callable[[], None]) -> None:
        self._watchers.remove(call)

    async def granted(self) -> None:
        """Wait on the running loop; grants come from another thread."""
        loop, granted = asyncio.get_running_loop(), asyncio.Event()

        def wake() -> None:
            with suppress(RuntimeError):  # the loop is closed: the worker ends
                loop.call_soon_threadsafe(granted.set)

        self.watch(wake)
        try:
            while self.spent:
                granted.clear()
                await granted.wait()
        finally:
            self.unwatch(wake)


def wait_for_any(credits: Sequence[ReplyCredit]) -> None:
    """Block until one of them is not spent; grants come from another thread."""
    granted = threading.Event()
    for credit in credits:
        credit.watch(granted.set)
    try:
        while all(credit.spent for credit in credits):
            granted.wait()
            granted.clear()
    finally:
        for credit in credits:
            credit.unwatch(granted.set)
