"""The calls of one listener."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from msx_frontend.held_bytes import HeldBytes
from msx_frontend.net.grpc.codes import Code
from msx_frontend.net.grpc.direct.refused import Refused

if TYPE_CHECKING:
    from msx_frontend.net.grpc.direct.call import DirectCall


class Calls:
    """`limit` and `response_limit` are in bytes of one message."""

    def __init__(self, limit: int, response_limit: int, held: HeldBytes | None = None) -> None:
        self.limit, self.response_limit, self.held = limit, response_limit, held or HeldBytes()
        self.open: set[DirectCall] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def cancel(self) -> None:
        """All of them, with what was done for them."""
        for call in list(self.open):
            call.refuse(Refused(Code.UNAVAILABLE, "The server is shutting down and could not wait any longer."))
        await asyncio.gather(*self._tasks, return_exceptions=True)
