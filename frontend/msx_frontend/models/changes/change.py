"""The one way in which what is served changes: check, save, apply."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar

from msx_frontend.models.changes.operations import Operations
from msx_frontend.models.state.state import State
from msx_frontend.whole_calls import WholeCalls


class Change(ABC):
    """One change of a call. Its steps run in this order, each once, while no other change is made."""

    at_end: ClassVar[bool] = False
    """It is made also when the server ends."""

    def check(self) -> None:
        """Raise ServiceError for what cannot be. Nothing has changed then."""
        return

    @abstractmethod
    async def save(self, state: State) -> None:
        """Write what the next start has to know. Raises NotSaved; nothing has changed then."""

    @abstractmethod
    def apply(self) -> None:
        """Put it in force, in memory and at once. What takes time is begun, or follows."""

    def is_news(self) -> bool:
        """Snapshots are to have it: what is served has changed, for good."""
        return True

    async def take_back(self, state: State) -> None:
        """Write what was saved before: `apply` has failed. A wish for workers stays. Raises NotSaved."""
        return


class Changes:
    """Makes changes one at a time, so that none meets another between its check and its end. `in_force` is called after
    each that is news."""

    def __init__(self, state: State, operations: Operations, in_force: Callable[[], None]) -> None:
        self._state, self._operations, self._in_force = state, operations, in_force
        self._one_at_a_time = asyncio.Lock()
        self._calls = WholeCalls()

    async def make(self, change: Change) -> None:
        """Returns when the change is saved and in force; it goes on to its end where the caller is cancelled.

        Raises ServiceError: that of its check, NotSaved, or ServiceUnavailable when the server ends.
        """
        await self._calls.run(self._made(change))

    async def _made(self, change: Change) -> None:
        async with self._one_at_a_time:
            if not change.at_end:
                self._operations.check_open()
            change.check()
            await change.save(self._state)
            try:
                change.apply()
            except BaseException:
                await change.take_back(self._state)
                raise
            if change.is_news():
                self._in_force()

    async def settled(self) -> None:
        """Returns when the changes that have begun are over."""
        async with self._one_at_a_time:
            return
