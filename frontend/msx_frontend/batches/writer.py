"""Writes the outcomes of a batch: those that came meanwhile share one write to the disk."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

from msx_core.service_errors import ServiceUnavailable
from msx_frontend.batches.line_files import LineFiles
from msx_frontend.batches.outcome import LineOutcome, unanswered
from msx_frontend.deferred.tries import Tries
from msx_frontend.files.shelf import FileShelf

log = logging.getLogger("msx.batches")

SHORT = 1000
"""Bytes of an outcome that is always kept: each failure is, so that no line ends without a word."""
MOST_BYTES = 16 << 20
"""Bytes that wait to be written, above which no further line starts."""


class UnmadeOutcome(NamedTuple):
    """`size`: about its bytes."""

    make: Callable[[], LineOutcome]
    size: int


class OutcomeWriter:
    """Counts bytes with the files of the batch's owner."""

    def __init__(self, id: str, owner: str, files: LineFiles, shelf: FileShelf, ended: Counter[str]) -> None:
        """`ended` counts the lines of all batches, as `done` and `failed`."""
        self._id, self._owner, self.files, self._shelf, self._ended = id, owner, files, shelf, ended
        self._reserved = 0
        self._unmade: list[UnmadeOutcome] = []
        self._waiting: list[LineOutcome] = []
        self._size = 0
        """Bytes of both."""
        self._task: asyncio.Task[None] | None = None
        self.completed = self.failed = 0
        """Lines that are on the disk."""

    async def begin(self) -> set[bytes]:
        """Count what the files have; returns the digests of their lines. Nothing may wait to be written."""
        found = await asyncio.to_thread(self.files.read)
        self.completed, self.failed = found.completed, found.failed
        self._reserve(self.files.size - self._reserved)
        return found.ids

    @property
    def is_full(self) -> bool:
        return self._size > MOST_BYTES

    @property
    def is_busy(self) -> bool:
        return self._task is not None and not self._task.done()

    def add(self, outcome: LineOutcome) -> None:
        """Write it soon."""
        self.add_later(lambda: outcome, len(outcome.data))

    def add_later(self, make: Callable[[], LineOutcome], size: int) -> None:
        """Write soon what `make` returns, which takes about `size` bytes: a thread makes it."""
        self._unmade.append(UnmadeOutcome(make, size))
        self._size += size
        if not self.is_busy:
            self._task = asyncio.get_running_loop().create_task(self._write())

    async def flush(self) -> None:
        """Returns when all is on the disk."""
        if self._task is not None:
            await asyncio.shield(self._task)

    async def close(self) -> None:
        """Write no more: what is not written runs again. What is written counts no longer."""
        self._reserve(-self._reserved)
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await asyncio.to_thread(self.files.close)

    def _reserve(self, size: int) -> None:
        self._shelf.reserve(self._owner, size)
        self._reserved += size

    def _within_room(self, outcome: LineOutcome) -> LineOutcome:
        if len(outcome.data) <= SHORT or len(outcome.data) <= self._shelf.room(self._owner):
            return outcome
        told = (
            f"The line ran, and its reply of {len(outcome.data)} bytes is not kept: all files of a key take at most "
            f"{self._shelf.limits.size} bytes (files_size). Delete some, and send the line again."
        )
        return unanswered(outcome.custom_id, "reply_not_kept", told)

    async def _write(self) -> None:
        tries = Tries()
        while self._unmade or self._waiting:
            await self._make()
            written = self._waiting[:]
            try:
                await asyncio.to_thread(self.files.write, written)
            except ServiceUnavailable as error:
                log.error("the results of %s wait to be written: %s", self._id, error)
                await asyncio.sleep(tries.wait())
            else:
                tries = Tries()
                self._forget(written)

    async def _make(self) -> None:
        if unmade := self._unmade[:]:
            made = await asyncio.to_thread(lambda: [one.make() for one in unmade])
            del self._unmade[: len(unmade)]
            self._size -= sum(one.size for one in unmade)
            for outcome in made:
                self._wait(self._within_room(outcome))

    def _wait(self, outcome: LineOutcome) -> None:
        """Count it, until it is written."""
        self._reserve(len(outcome.data))
        self._waiting.append(outcome)
        self._size += len(outcome.data)

    def _forget(self, written: list[LineOutcome]) -> None:
        del self._waiting[: len(written)]
        self._size -= sum(len(one.data) for one in written)
        good = sum(one.is_good for one in written)
        bad = len(written) - good
        self.completed, self.failed = self.completed + good, self.failed + bad
        self._ended.update(done=good, failed=bad)
