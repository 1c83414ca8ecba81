"""Owns signals and the order of start and end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
from collections.abc import Awaitable, Callable
from typing import Any

from msx_frontend.assembly.instance import InstanceInfo
from msx_frontend.assembly.server import Server

log = logging.getLogger("msx.server")


class Lifecycle:
    """SIGTERM or SIGINT: not ready, drain, end. A second one ends the wait."""

    def __init__(self, server: Server, drain_limit: float, on_started: Callable[[InstanceInfo], None]) -> None:
        self._server, self._drain_limit, self._on_started = server, drain_limit, on_started
        self._stop = asyncio.Event()
        self._hurry = asyncio.Event()

    async def run(self) -> None:
        """Raises whatever kept the server from starting; then nothing of it is left."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._signalled)
        try:
            if await self._started():
                await self._stop.wait()
                log.info("shutting down: finishing what runs, for at most %g s", self._drain_limit)
                await self._first_of(self._server.drain(self._drain_limit), self._hurry.wait())
        finally:
            await self._server.stop()
        log.info("stopped")

    async def _started(self) -> bool:
        start = asyncio.ensure_future(self._server.start())
        await self._first_of(start, self._stop.wait())
        if start.cancelled() or not start.done():
            return False
        info = start.result()
        log.info("Model server started: %s", info.summary())
        self._on_started(info)
        return True

    def _signalled(self) -> None:
        if self._stop.is_set():
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
