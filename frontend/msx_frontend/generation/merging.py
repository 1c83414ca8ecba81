"""Several streams as one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import TypeVar

from msx_frontend.errors import ServiceError

AT_ONCE = 32
"""Of one request: a list of a thousand prompts must not fill the queue that others wait in."""

T = TypeVar("T")


async def merged(streams: Sequence[AsyncIterator[T]]) -> AsyncIterator[tuple[int, T]]:
    """Each item with the number of its stream, as they come; the first error of any ends all."""
    if len(streams) == 1:
        async for item in streams[0]:
            yield 0, item
        return
    turns = asyncio.Semaphore(AT_ONCE)
    ready: asyncio.Queue[tuple[int, T] | ServiceError | None] = asyncio.Queue(AT_ONCE)

    async def pump(number: int, stream: AsyncIterator[T]) -> None:
        try:
            async with turns:
                async for item in stream:
                    await ready.put((number, item))
            await ready.put(None)
        except ServiceError as error:
            await ready.put(error)

    tasks = [asyncio.create_task(pump(*numbered)) for numbered in enumerate(streams)]
    try:
        async for entry in _until_ended(ready, tasks):
            yield entry
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _until_ended(
    ready: asyncio.Queue[tuple[int, T] | ServiceError | None], tasks: list[asyncio.Task[None]]
) -> AsyncIterator[tuple[int, T]]:
    left = len(tasks)
    while left:
        entry = await ready.get()
        if entry is None:
            left -= 1
        elif isinstance(entry, ServiceError):
            raise entry
        else:
            yield entry
