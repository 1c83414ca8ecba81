"""One coroutine waits, others say that something has changed."""

from __future__ import annotations

import asyncio


class Bell:
    """Whoever waits looks again by itself whether it is what it waited for. A ring that nobody hears is forgotten."""

    __slots__ = ("_waiter",)

    def __init__(self) -> None:
        self._waiter: asyncio.Future[None] | None = None

    def ring(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def rung(self) -> None:
        """Until the next ring. For one at a time."""
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None
