"""The life of one batch, from the check of its input to its files."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import Executor
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, NamedTuple

from msgspec import structs

from msx_core.service_errors import ServiceUnavailable
from msx_frontend.batches.book import BatchBook
from msx_frontend.batches.errors import BatchHasEnded
from msx_frontend.batches.input_lines import LineRules, WrongLine, check_file
from msx_frontend.batches.line_feed import LineFeed
from msx_frontend.batches.line_files import LineFiles
from msx_frontend.batches.line_pass import LineParts, LinePass
from msx_frontend.batches.outcome import unanswered
from msx_frontend.batches.records import BatchHead, Fault, KeptBatch, State
from msx_frontend.batches.writer import OutcomeWriter
from msx_frontend.deferred.tries import Tries
from msx_frontend.files.records import FileHead, StoredFile, new_file_id
from msx_frontend.files.shelf import FileShelf, add_file
from msx_frontend.public_text import public_text
from msx_frontend.store.records import Records

log = logging.getLogger("msx.batches")

NOT_RUN: Mapping[State, tuple[str, str]] = {
    "expired": ("batch_expired", "The line could not be run before the completion window ended."),
    "cancelled": ("batch_cancelled", "The line was not run before the batch was cancelled."),
}


class RunParts(NamedTuple):
    """`threads` read inputs; `ended` counts lines."""

    book: BatchBook
    shelf: FileShelf
    rules: LineRules
    lines: LineParts
    threads: Executor
    ended: Counter[str]


class BatchRun:
    """A batch that runs. `batch` is it as it is on the disk."""

    def __init__(self, batch: KeptBatch, parts: RunParts) -> None:
        self.batch, self._parts = batch, parts
        self._path = parts.shelf.path(batch.head.input)
        self._writer: OutcomeWriter | None = None
        self._pass: LinePass | None = None
        self._saving = asyncio.Lock()
        self._is_over = False

    @property
    def is_busy(self) -> bool:
        """Whether lines run, or their outcomes are being written."""
        return self._pass is not None and self._pass.is_busy

    @property
    def is_stalled(self) -> bool:
        """See LinePass."""
        return self._pass is not None and self._pass.is_stalled

    @property
    def head(self) -> BatchHead:
        """How it stands now."""
        head, writer = self.batch.head, self._writer
        return head if writer is None else _counted(head, writer)

    async def run(self) -> None:
        """Returns when it has ended: where the disk fails or has no room, after that is over."""
        try:
            await self._run_to_the_end()
        finally:
            self._is_over = True

    async def _run_to_the_end(self) -> None:
        tries = Tries()
        while not self.batch.has_ended:
            try:
                await self._run_or_fail()
            except (ServiceUnavailable, OSError) as error:
                log.error("%s waits: %s", self.batch.id, error)
                await asyncio.sleep(tries.wait())

    async def _run_or_fail(self) -> None:
        """Raises ServiceUnavailable, OSError."""
        try:
            await self._run()
        except (FileNotFoundError, WrongLine) as error:
            told = f"The input file cannot be read: {public_text(str(error))}."
            await self._fail([Fault("unreadable_file", told)])
        except (ServiceUnavailable, OSError):
            raise
        except Exception:
            log.exception("%s has failed", self.batch.id)
            await self._fail([Fault("internal_error", "The server made a mistake, which is in its log.")])

    async def cancel(self) -> KeptBatch:
        """Raises BatchHasEnded, StoreUnavailable."""
        async with self._saving:
            state = self.batch.head.state
            if state not in ("validating", "in_progress"):
                raise BatchHasEnded(self.batch.id, state)
            await self._save(self.head.into("cancelling", time.time()))
        if self._pass is not None:
            self._pass.wake()
        return self.batch

    # -- from state to state --

    async def _run(self) -> None:
        if self.batch.head.state == "validating":
            await self._validate()
        if self.batch.head.state == "cancelling" and not self.batch.head.output:
            await self._move("cancelled")
        elif not self.batch.has_ended:
            async with self._opened() as writer:
                await self._answer(writer)

    async def _validate(self) -> None:
        work = partial(check_file, self._path, self._parts.rules, lambda: not self._is_validating)
        checked = await asyncio.get_running_loop().run_in_executor(self._parts.threads, work)
        if checked.faults:
            await self._fail(checked.faults)
            return
        async with self._saving:
            if self._is_validating:
                files = {"output": new_file_id(), "error": new_file_id()}
                await self._save(self.batch.head.into("in_progress", time.time(), total=checked.total, **files))

    @property
    def _is_validating(self) -> bool:
        """False when it was cancelled, or the server closes."""
        return self.batch.head.state == "validating" and not self._is_over

    @asynccontextmanager
    async def _opened(self) -> AsyncIterator[OutcomeWriter]:
        batch, shelf = self.batch, self._parts.shelf
        paths = shelf.path(batch.head.output), shelf.path(batch.head.error)
        files = await asyncio.to_thread(LineFiles, *paths)
        writer = self._writer = OutcomeWriter(batch.id, batch.owner, files, shelf, self._parts.ended)
        try:
            yield writer
        finally:
            self._writer = None
            await writer.close()

    async def _answer(self, writer: OutcomeWriter) -> None:
        """Run the lines that have no outcome, and end."""
        done = await writer.begin()
        if self.batch.head.state == "in_progress":
            feed = LineFeed(self._path, self._parts.rules, done, self._parts.threads)
            self._pass = LinePass(self._parts.lines, feed, writer)
            try:
                await self._pass.run(self._stops)
            finally:
                self._pass = None
        end = await self._end_state()
        if end in NOT_RUN:
            await self._write_rest(writer, *NOT_RUN[end])
        await self._end(end, writer)

    def _stops(self) -> bool:
        head = self.batch.head
        return head.state != "in_progress" or head.is_late or time.time() >= head.end

    async def _end_state(self) -> State:
        """The state in which it is to end; none of its lines runs any more."""
        async with self._saving:
            head = self.head
            if head.state == "cancelling":
                return "cancelled"
            if head.is_late:
                return "expired"
            if head.state == "in_progress" and head.completed + head.failed < head.total:
                await self._save(structs.replace(head, is_late=True))
                return "expired"
            if head.state == "in_progress":
                await self._save(head.into("finalizing", time.time()))
            return "completed"

    async def _write_rest(self, writer: OutcomeWriter, code: str, told: str) -> None:
        """Tell of each line without an outcome why it has none."""
        rest = LineFeed(self._path, self._parts.rules, await writer.begin(), self._parts.threads)
        while lines := await rest.some():
            for line in lines:
                writer.add(unanswered(line.custom_id, code, told))
            await writer.flush()

    async def _end(self, state: State, writer: OutcomeWriter, **changes: Any) -> None:
        """Make its files files of its owner."""
        now, head, files = time.time(), self.head, writer.files
        await asyncio.to_thread(files.end)
        output = self._made(head.output, "output", files.output.size, now)
        error = self._made(head.error, "error", files.error.size, now)
        made = [one for one in (output, error) if one.head.size]

        def also(records: Records) -> None:
            for file in made:
                add_file(records, file)

        ids = {"output": output.id * bool(output.head.size), "error": error.id * bool(error.head.size)}
        async with self._saving:
            await self._save(head.into(state, now, **ids, **changes), also)
        self._parts.shelf.kept(made)

    def _made(self, id: str, which: str, size: int, now: float) -> StoredFile:
        batch, name = self.batch, f"{self.batch.id}_{which}.jsonl"
        expires = self._parts.shelf.expires_after(batch.head.output_seconds, now)
        return StoredFile(id, batch.owner, now, expires, FileHead(name, size, "batch_output"))

    async def _fail(self, faults: list[Fault]) -> None:
        """Keep what was answered."""
        if self.batch.head.output:
            async with self._opened() as writer:
                await writer.begin()
                await self._end("failed", writer, faults=faults)
        else:
            await self._move("failed", faults=faults)

    async def _move(self, state: State, **changes: Any) -> None:
        async with self._saving:
            await self._save(self.batch.head.into(state, time.time(), **changes))

    async def _save(self, head: BatchHead, also: Callable[[Records], object] | None = None) -> None:
        self.batch = await self._parts.book.save(self.batch, head, also)


def _counted(head: BatchHead, writer: OutcomeWriter) -> BatchHead:
    return structs.replace(head, completed=writer.completed, failed=writer.failed)
