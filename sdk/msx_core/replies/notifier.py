"""One coroutine waits until another part of the server says that something has changed."""

import asyncio


class Notifier:
    """A condition variable of one waiter, without a lock.

    The waiter checks for itself whether what it waited for is there. A notification without a waiter is lost.
    """

    __slots__ = ("_waiter",)

    def __init__(self) -> None:
        self._waiter: asyncio.Future[None] | None = None

    def notify(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def wait(self) -> None:
        """Until the next notification. One coroutine at a time may wait."""
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None
