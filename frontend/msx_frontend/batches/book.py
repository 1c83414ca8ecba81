"""All batches: each change on the disk before it is told."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable

from msx_frontend.batches.errors import TooManyBatches, UnknownBatch
from msx_frontend.batches.records import KIND, BatchHead, KeptBatch, State, batch_of
from msx_frontend.store.records import DAY, Bounds, Records
from msx_frontend.store.store import Store

ENDLESS = 1e12
"""The end of a record that no sweep removes, in seconds since the epoch: a batch that has not ended."""
UNBOUNDED = Bounds(1 << 40, 1 << 60, "max_batches")
"""Bounds of the records: the book itself has those of batches."""


class BatchBook:
    """Knows all batches by memory, since a key has few. Methods raise StoreUnavailable."""

    def __init__(self, store: Store, most: int, days: float) -> None:
        """`most` batches of a key; `days` for which one is kept that has ended."""
        self._store, self._most, self._days = store, most, days
        self._batches: dict[str, KeptBatch] = {}
        self._open: dict[str, KeptBatch] = {}
        """Batches that have not ended, the oldest first."""
        self.states: Counter[State] = Counter()
        """How many batches are in each state."""
        self._begun: Counter[str] = Counter()
        """Batches that are being written, by owner."""

    async def look(self) -> None:
        """Know batches that a server before this one has made."""
        for batch in await self._store.run(self._others):
            self._learn(batch)

    def _others(self, records: Records) -> list[KeptBatch]:
        """Batches that are not known. Blocks."""
        return [batch_of(record) for record in records.every(KIND) if record.id not in self._batches]

    async def add(self, id: str, owner: str, head: BatchHead, also: Callable[[Records], object]) -> KeptBatch:
        """Write a new batch, and what `also` writes. Raises TooManyBatches."""
        self._forget_old()
        if len(self.batches(owner)) + self._begun[owner] >= self._most:
            raise TooManyBatches(self._most)
        batch = KeptBatch(id, owner, time.time(), ENDLESS, head)

        def write(records: Records) -> None:
            records.add(batch.record(), {}, UNBOUNDED)
            also(records)

        self._begun[owner] += 1
        try:
            await self._store.run(write)
        finally:
            self._begun[owner] -= 1
        self._know(batch)
        return batch

    async def find(self, id: str, owner: str) -> KeptBatch:
        """Raises UnknownBatch."""
        if id not in self._batches and (record := await self._store.find(KIND, id, owner)) is not None:
            self._learn(batch_of(record))
        found = self._batches.get(id)
        if found is None or found.owner != owner or found.expires <= time.time():
            raise UnknownBatch(id)
        return found

    def owner_of(self, id: str) -> str:
        """Raises UnknownBatch."""
        if (found := self._batches.get(id)) is None:
            raise UnknownBatch(id)
        return found.owner

    def batches(self, owner: str | None) -> list[KeptBatch]:
        """Batches of this owner, or of all, the oldest first."""
        now = time.time()
        return [one for one in self._batches.values() if owner in (None, one.owner) and one.expires > now]

    def open_one(self, id: str) -> KeptBatch | None:
        """None for one that has ended."""
        return self._open.get(id)

    def open(self) -> list[KeptBatch]:
        """Batches that have not ended, the oldest first."""
        return [*self._open.values()]

    async def save(
        self, batch: KeptBatch, head: BatchHead, also: Callable[[Records], object] | None = None
    ) -> KeptBatch:
        """Write how the batch stands from now on, and what `also` writes."""
        changed = batch._replace(head=head)
        if changed.has_ended:
            changed = changed._replace(expires=time.time() + self._days * DAY)

        def write(records: Records) -> None:
            record = changed.record()
            records.change(KIND, record.id, record.head, record.expires)
            if also is not None:
                also(records)

        await self._store.run(write)
        self._know(changed)
        return changed

    def _learn(self, batch: KeptBatch) -> None:
        """Know a batch of another server; one that is known stands as it is known."""
        if batch.id not in self._batches:
            self._know(batch)

    def _know(self, batch: KeptBatch) -> None:
        """How the batch stands from now on."""
        if (before := self._batches.get(batch.id)) is not None:
            self.states[before.head.state] -= 1
        self.states[batch.head.state] += 1
        self._batches[batch.id] = batch
        if not batch.has_ended:
            self._open[batch.id] = batch
        else:
            self._open.pop(batch.id, None)

    def _forget_old(self) -> None:
        now = time.time()
        for id in [id for id, one in self._batches.items() if one.expires <= now]:
            self.states[self._batches.pop(id).head.state] -= 1
