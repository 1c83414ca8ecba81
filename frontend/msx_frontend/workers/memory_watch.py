"""Measures the memory of a group's ranks, and reports a rank that has taken more than it may."""

import asyncio
from collections.abc import Callable, Iterable
from typing import Protocol

LOOK = 1.0
"""Seconds between two measurements."""


class MeasuredRank(Protocol):
    @property
    def rank(self) -> int: ...

    async def memory_taken(self) -> int:
        """Bytes."""


class MemoryWatch:
    """`passed(rank, bytes)` is called once, on the loop."""

    def __init__(self, limit: int | None, ranks: Iterable[MeasuredRank], passed: Callable[[int, int], None]) -> None:
        self._limit = limit
        self._ranks = ranks
        self._passed = passed
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        if self._limit is not None:
            self._task = asyncio.create_task(self._run(self._limit), name="memory-watch")

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _run(self, limit: int) -> None:
        while True:
            for rank in self._ranks:
                taken = await rank.memory_taken()
                if taken > limit:
                    return self._passed(rank.rank, taken)
            await asyncio.sleep(LOOK)
