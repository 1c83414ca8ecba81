"""How much of a streamed reply may be sent before its client has taken some of it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress

UNLIMITED = 1 << 62

_watching = threading.Lock()


class ReplyCredit:
    """Credit that the client of a reply has granted: a base class, so that a stream costs only the counting.

    One thread at a time sends; another one grants. A chunk is sent whole once any credit is left. A thread that waits
    calls `watch`, then looks at `spent`: a grant is noted, then told to those who watch, so that none is missed.
    """

    __slots__ = ("_watchers", "credit", "sent")

    def __init__(self) -> None:
        self.credit, self.sent = UNLIMITED, 0
        """Bytes that all chunks of the reply may have so far, and that they have had."""
        self._watchers: tuple[Callable[[], None], ...] = ()

    @property
    def spent(self) -> bool:
        """The sender of the next chunk has to wait."""
        return self.sent >= self.credit

    def grant(self, credit: int) -> None:
        """Raise the credit; a lower one changes nothing."""
        self.credit = max(credit, self.credit)
        for call in self._watchers:
            call()

    def lift(self) -> None:
        """The reply is not taken any more: nothing waits."""
        self.grant(UNLIMITED)

    def watch(self, call: Callable[[], None]) -> None:
        with _watching:
            self._watchers = (*self._watchers, call)

    def unwatch(self, call: Callable[[], None]) -> None:
        with _watching:
            self._watchers = tuple(other for other in self._watchers if other != call)

    async def granted(self) -> None:
        """Wait on the running loop; grants come from another thread."""
        from asyncio import Event, get_running_loop  # is there, where this runs; others need not wait for it

        loop, granted = get_running_loop(), Event()

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


def wait_for_any(replies: Sequence[ReplyCredit]) -> None:
    """Block until the credit of one of them is not spent; grants come from another thread."""
    granted = threading.Event()
    for reply in replies:
        reply.watch(granted.set)
    try:
        while all(reply.spent for reply in replies):
            granted.wait()
            granted.clear()
    finally:
        for reply in replies:
            reply.unwatch(granted.set)
