"""Looks at the memory of a group's ranks, and tells when one has taken more than it may."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from msx_frontend.workers.own_memory import own_memory_of_all

LOOK = 1.0
"""Seconds between two looks."""


class MemoryWatch:
    """`pids` tells the ranks' processes; `passed(rank, bytes)` is called once, on the loop."""

    def __init__(
        self, limit: int | None, pids: Callable[[], Mapping[int, int]], passed: Callable[[int, int], None]
    ) -> None:
        self._limit, self._pids, self._passed = limit, pids, passed
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        if self._limit is not None:
            self._task = asyncio.create_task(self._run(self._limit), name="memory-watch")

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _run(self, limit: int) -> None:
        """By thread: of what a rank has started, the kernel walks through all pages."""
        while True:
            for rank, pid in self._pids().items():
                taken = await asyncio.to_thread(own_memory_of_all, pid)
                if taken > limit:
                    return self._passed(rank, taken)
            await asyncio.sleep(LOOK)
