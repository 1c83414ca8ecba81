"""Tasks of jobs, which are stopped together."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class Tasks:
    def __init__(self) -> None:
        self._stopped: set[asyncio.Task[Any]] = set()
        """Tasks that a close stops."""
        self._lasting: set[asyncio.Task[Any]] = set()
        """Tasks that a close waits for."""

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        _kept(work, self._stopped)

    async def to_the_end(self, work: Coroutine[Any, Any, T]) -> T:
        """Goes on to the end, also where the caller is cancelled."""
        return await asyncio.shield(_kept(work, self._lasting))

    async def close(self) -> None:
        for task in list(self._stopped):
            task.cancel()
        await asyncio.gather(*self._stopped, *self._lasting, return_exceptions=True)


def _kept(work: Coroutine[Any, Any, T], tasks: set[asyncio.Task[Any]]) -> asyncio.Task[T]:
    task = asyncio.get_running_loop().create_task(work)
    tasks.add(task)
    task.add_done_callback(tasks.discard)
    return task
