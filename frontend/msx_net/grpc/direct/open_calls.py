"""The open calls of one listener."""

import asyncio
from collections.abc import Coroutine
from typing import Any, Protocol

from msx_core.held_bytes import HeldBytes
from msx_net.grpc.codes import Code
from msx_net.grpc.outcome import Outcome
from msx_net.heartbeats import OFF, StreamHeartbeats

STOPPED = Outcome(Code.UNAVAILABLE, "The server is shutting down and could not wait any longer.")


class Stoppable(Protocol):
    def stop(self, outcome: Outcome) -> None:
        """Ends the call, and what is done for it."""


class OpenCalls:
    """`limit` is in bytes of one message of a client."""

    def __init__(self, limit: int, held: HeldBytes | None = None, heartbeats: StreamHeartbeats = OFF) -> None:
        self.limit = limit
        self.held, self.heartbeats = held or HeldBytes(), heartbeats
        self.open: set[Stoppable] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def stop(self) -> None:
        """All of them."""
        for call in list(self.open):
            call.stop(STOPPED)
        await asyncio.gather(*self._tasks, return_exceptions=True)
