"""The store as the loop uses it: one thread reads and writes, and what came meanwhile shares a write to the disk."""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from msx_frontend.store.errors import StoreUnavailable, errors_told
from msx_frontend.store.file import open_file
from msx_frontend.store.records import AT_ONCE, Bounds, Record, Records

log = logging.getLogger("msx.store")

MOST_WAITING = 1000
"""Calls that wait for the thread; one more is refused."""
SWEEP_EVERY = 60.0
"""Seconds between two looks for records that have expired."""

T = TypeVar("T")
Work = Callable[[Records], Any]


class Answered(NamedTuple):
    result: Any
    error: Exception | None


class StoreCall(NamedTuple):
    work: Work
    done: Callable[[Answered], None]


class Store:
    """Each change is on the disk when its method returns. Methods raise StoreUnavailable."""

    def __init__(self, path: Path, clock: Callable[[], float] = time.time) -> None:
        """Blocks. `clock` tells seconds since the epoch. Raises StoreError."""
        self.path, self._clock = path, clock
        self._db = open_file(path)
        self._records = Records(self._db)
        self._calls: queue.Queue[StoreCall | None] = queue.Queue()
        self._sweep_at = time.monotonic() + SWEEP_EVERY
        self._thread = threading.Thread(target=self._run, name="msx-store", daemon=True)
        self._thread.start()

    async def add(self, record: Record, parts: Mapping[str, bytes], bounds: Bounds) -> None:
        """Raises StoreUnavailable where a bound or the disk has no room for it."""
        await self.run(lambda records: records.add(record, parts, bounds))

    async def find(self, kind: str, id: str, owner: str) -> Record | None:
        """None for a record that there is not, that has expired, or that is another owner's."""
        return await self.run(lambda records: records.find(kind, id, owner, self._clock()))

    async def parts(self, kind: str, id: str, owner: str, names: Sequence[str]) -> list[bytes] | None:
        """The parts of these names; None where there is no such record."""

        def read(records: Records) -> list[bytes] | None:
            if records.find(kind, id, owner, self._clock()) is None:
                return None
            return [records.part(kind, id, name) or b"" for name in names]

        return await self.run(read)

    async def delete(self, kind: str, id: str, owner: str) -> bool:
        """False where there is no such record."""
        return await self.run(lambda records: records.delete(kind, id, owner))

    async def totals(self) -> dict[str, tuple[int, int]]:
        """The number of records of each kind, and their bytes."""
        return await self.run(lambda records: records.totals())

    async def sweep(self) -> int:
        """Remove records that have expired; returns how many. The thread does so by itself, too."""
        return await self.run(lambda records: records.sweep(self._clock()))

    def close(self) -> None:
        """Waits for what was called. May be called again."""
        if self._thread.is_alive():
            self._calls.put(None)
            self._thread.join()
        self._db.close()

    async def run(self, work: Callable[[Records], T]) -> T:
        """Run `work` in the thread, as one change. Raises what it raises; then nothing is changed."""
        if self._calls.qsize() >= MOST_WAITING or not self._thread.is_alive():
            raise StoreUnavailable(f"{self.path} has {MOST_WAITING} calls waiting. Try again later.")
        loop = asyncio.get_running_loop()
        found: asyncio.Future[T] = loop.create_future()

        def done(answered: Answered) -> None:
            loop.call_soon_threadsafe(_settle, found, answered)

        self._calls.put(StoreCall(work, done))
        return await found

    # -- the thread --

    def _run(self) -> None:
        is_open = True
        while is_open:
            calls, is_open = self._next(max(self._sweep_at - time.monotonic(), 0.0))
            if time.monotonic() >= self._sweep_at:
                calls.append(StoreCall(lambda records: records.sweep(self._clock()), self._swept))
            self._answer(calls)

    def _swept(self, answered: Answered) -> None:
        """Again at once where there may be more: calls that came meanwhile are answered together with that."""
        if answered.error is not None:
            log.error("the store is not swept: %s", answered.error)
        self._sweep_at = time.monotonic() + (0.0 if answered.result == AT_ONCE else SWEEP_EVERY)

    def _next(self, wait: float) -> tuple[list[StoreCall], bool]:
        """All calls that wait, none where it is time to sweep, and whether the store stays open."""
        calls: list[StoreCall] = []
        with suppress(queue.Empty):
            call = self._calls.get(timeout=wait)
            while call is not None:
                calls.append(call)
                call = self._calls.get_nowait()
            return calls, False
        return calls, True

    def _answer(self, calls: list[StoreCall]) -> None:
        """Answer them within one transaction, and tell the results when it is on the disk. Where that fails each has
        one of its own, so that a record for which there is no room does not keep out others. Where none begins, since
        another program holds the file, all have failed."""
        answered: list[Answered] = []
        has_begun = False
        try:
            with errors_told(self.path):
                self._db.execute("BEGIN IMMEDIATE")
                has_begun = True
                answered = [self._result(call.work) for call in calls]
                self._db.execute("COMMIT")
        except Exception as error:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            if has_begun and len(calls) > 1:
                for call in calls:
                    self._answer([call])
                return
            answered = [Answered(None, error)] * len(calls)
        for call, one in zip(calls, answered, strict=True):
            call.done(one)

    def _result(self, work: Work) -> Answered:
        self._db.execute("SAVEPOINT call")
        try:
            with errors_told(self.path):
                found = Answered(work(self._records), None)
        except Exception as error:
            if not self._db.in_transaction:
                raise  # SQLite has undone the whole transaction
            self._db.execute("ROLLBACK TO call")
            found = Answered(None, error)
        self._db.execute("RELEASE call")
        return found


def _settle(found: asyncio.Future[Any], answered: Answered) -> None:
    if found.cancelled():
        return
    if answered.error is None:
        found.set_result(answered.result)
    else:
        found.set_exception(answered.error)
