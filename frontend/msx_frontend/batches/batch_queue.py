"""Batches that wait for their begin: keys take turns."""

from __future__ import annotations

from collections.abc import Container

from msx_frontend.batches.records import KeptBatch
from msx_frontend.deferred.fair_queue import FairQueue


class WaitingBatch:
    """`lane`: the owner, who takes turns with others."""

    __slots__ = ("id", "lane", "number")

    def __init__(self, id: str, owner: str) -> None:
        self.id, self.lane, self.number = id, owner, 0


class BatchQueue:
    def __init__(self) -> None:
        self._turns = FairQueue[WaitingBatch]()
        self._waiting: dict[str, WaitingBatch] = {}

    def add(self, batch: KeptBatch) -> None:
        """One that waits already stays where it is."""
        if batch.id not in self._waiting:
            one = self._waiting[batch.id] = WaitingBatch(batch.id, batch.owner)
            self._turns.add(one)

    def take(self, busy: Container[str]) -> str | None:
        """The id of the next one; None where none waits but of owners that are busy."""
        one = self._turns.take(busy)
        return None if one is None else self._waiting.pop(one.id).id

    def drop(self, id: str) -> None:
        """One that does not wait is not an error."""
        if (one := self._waiting.pop(id, None)) is not None:
            self._turns.drop(one)
