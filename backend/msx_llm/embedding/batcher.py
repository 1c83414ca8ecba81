"""Texts that wait for the network, and its current call."""

import asyncio
from collections.abc import Awaitable, Callable, Sized
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from msx_llm.embedding.pooling import Array
from msx_llm.embedding.shapes import BatchShape, BatchShapes

T = TypeVar("T", bound=Sized)
"""A text as token ids, or a pair of texts."""
Run = Callable[[list[T], BatchShape], Awaitable[Array]]
"""Texts, and a shape that holds them → [texts, size]"""


@dataclass(eq=False)
class _Waiting(Generic[T]):
    tokens: T
    vector: asyncio.Future[Array] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


class Batcher(Generic[T]):
    """A text that arrives while nothing runs starts at once; those that arrive during a call share the next calls."""

    def __init__(self, shapes: BatchShapes, run: Run[T]) -> None:
        self._shapes, self._run = shapes, run
        self._waiting: list[_Waiting[T]] = []
        self._work: asyncio.Task[None] | None = None

    async def embed(self, tokens: T) -> Array:
        """The network's answer [size]. If the caller is cancelled before the call, the text is left out."""
        waiting = _Waiting(tokens)
        self._waiting.append(waiting)
        if self._work is None:
            self._work = asyncio.create_task(self._serve())
        return await waiting.vector

    async def _serve(self) -> None:
        try:
            while batch := self._next():
                await self._answer(*batch)
        finally:
            self._work = None

    def _next(self) -> tuple[list[_Waiting[T]], BatchShape] | None:
        self._waiting = [waiting for waiting in self._waiting if not waiting.vector.done()]
        if not self._waiting:
            return None
        chosen, shape = self._shapes.choose([len(waiting.tokens) for waiting in self._waiting])
        batch = [self._waiting[index] for index in chosen]
        taken = set(chosen)
        self._waiting = [waiting for index, waiting in enumerate(self._waiting) if index not in taken]
        return batch, shape

    async def _answer(self, batch: list[_Waiting[T]], shape: BatchShape) -> None:
        try:
            vectors = await self._run([waiting.tokens for waiting in batch], shape)
        except Exception as error:  # whatever the network raises is the answer to its texts
            for waiting in batch:
                if not waiting.vector.done():
                    waiting.vector.set_exception(error)
            return
        for waiting, vector in zip(batch, vectors, strict=True):
            if not waiting.vector.done():
                waiting.vector.set_result(vector)
