"""Sleep of an engine: its requests have ended, and its runner has released memory."""

from collections.abc import Awaitable, Callable
from typing import Any

from msx_core.generation.sleep import ALL, AWAKE
from msx_llm.blocks import BlockPool
from msx_llm.draft_model import DraftModel
from msx_llm.step import Sleep, Step, Wake

ASLEEP = "The model is asleep: an operator has released its memory. Ask again when it is awake."


class Sleeper:
    """`level` is the present one: see `SleepRequest`. Steps of all ranks release and read, in the order of steps."""

    def __init__(self, run: Callable[[Step], Awaitable[Any]], pool: BlockPool, draft_model: DraftModel | None) -> None:
        self._run, self._pool, self._draft_model = run, pool, draft_model
        self.level = AWAKE

    async def change(self, level: int) -> None:
        """Only while there are no requests. A deeper sleep than `level` goes on. Raises what the runner raises."""
        if level == AWAKE and self.level:
            await self._wake()
        elif level > self.level:
            await self._sleep(level)

    async def _sleep(self, level: int) -> None:
        self.level = level
        self._pool.forget()
        await self._run(Sleep(weights=level == ALL))
        if self._draft_model is not None:
            self._draft_model.sleep(weights=level == ALL)

    async def _wake(self) -> None:
        await self._run(Wake())
        if self._draft_model is not None:
            self._draft_model.wake()
        self.level = AWAKE
