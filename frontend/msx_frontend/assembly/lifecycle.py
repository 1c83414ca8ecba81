"""Handles signals, and runs start, drain and stop in order."""

import asyncio
import contextlib
import logging
import signal
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from functools import partial
from typing import Any

from msx_frontend.assembly.handover import Handover
from msx_frontend.assembly.server import Server
from msx_frontend.supervision.handled import HANDED_ON, STOPPING

log = logging.getLogger("msx.server")

Start = Callable[[AsyncExitStack], Awaitable[Server]]
"""Starts a server; the stack stops its parts."""


class Lifecycle:
    """SIGTERM, SIGINT or `stop`: not ready, drain, stop. A second one ends the drain; one that the parent hands on
    counts for itself."""

    def __init__(
        self,
        start: Start,
        drain_limit: float,
        on_started: Callable[[Server], None],
        upgrade_limit: float | None = None,
    ) -> None:
        """`upgrade_limit`: seconds that running requests have when another frontend follows, as SIGUSR2 says; None
        where none does."""
        self._start = start
        self._drain_limit = drain_limit
        self._on_started = on_started
        self._stop = asyncio.Event()
        self._hurry = asyncio.Event()
        self._upgrade_limit = upgrade_limit
        self._serves = self._leaves = self._ends = False
        self._told = set[bool]()
        """Who has told it to stop: its parent (True), others, or both."""

    async def run(self) -> None:
        """Raises the error that kept the server from starting; all its parts are stopped then."""
        loop = asyncio.get_running_loop()
        for number in STOPPING:
            loop.add_signal_handler(number, self.stop)
        loop.add_signal_handler(HANDED_ON, partial(self.stop, handed_on=True))
        if self._upgrade_limit is not None:
            loop.add_signal_handler(signal.SIGUSR2, self.leave)
        async with AsyncExitStack() as parts:
            if (server := await self._started(parts)) is not None:
                await self._stop.wait()
                await self._hand_over(server)
                log.info("shutting down: running requests may finish within %g s", self._drain_limit)
                await self._first_of(server.drain(self._drain_limit), self._hurry.wait())
        log.info("stopped")

    async def _hand_over(self, server: Server) -> None:
        """Does not return where another frontend takes this one's place."""
        supervisor = server.models.context.supervisor
        if self._leaves and self._upgrade_limit is not None and supervisor is not None:
            log.info("another frontend follows: running requests may finish within %g s", self._upgrade_limit)
            handover = Handover(server, supervisor, self._upgrade_limit)
            await self._first_of(handover.run(), self._hurry.wait())
            log.info("the next frontend has all")
            handover.end()

    async def _started(self, parts: AsyncExitStack) -> Server | None:
        """None when a signal comes before the server has started."""
        start = asyncio.ensure_future(self._start(parts))
        await self._first_of(start, self._stop.wait())
        if start.cancelled() or not start.done():
            return None
        server = start.result()
        log.info("Model server started: %s", server.info.summary())
        self._on_started(server)
        self._serves = True
        if self._leaves:
            self._stop.set()
        return server

    @property
    def stopping(self) -> bool:
        return self._stop.is_set()

    def leave(self) -> None:
        """Another frontend waits to take this one's place: a start ends first. Ignored while the server stops."""
        self._leaves = self._leaves or not self._stop.is_set()
        if self._serves:
            self._stop.set()

    def stop(self, *, handed_on: bool = False) -> None:
        """`handed_on`: by the supervisor, or process 1. What it and this process are told by one command (`killall`,
        `pkill -f`) counts once."""
        is_other = bool(self._told) and handed_on not in self._told
        self._told.add(handed_on)
        if is_other:
            return
        if self._leaves and not self._ends:
            self._ends = True
            asyncio.get_running_loop().call_later(self._drain_limit, self._hurry.set)
        elif self._stop.is_set():
            self._hurry.set()
        self._stop.set()

    async def _first_of(self, *calls: Awaitable[Any]) -> None:
        tasks = [asyncio.ensure_future(call) for call in calls]
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            task.cancel()
        for task in tasks:
            with contextlib.suppress(BaseException):
                await task
