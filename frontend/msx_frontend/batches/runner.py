"""Runs batches: some at a time, of which no owner has more than half."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

from msx_core.service_errors import BadRequest, ServiceUnavailable
from msx_frontend.batches.asked import BatchRequest, window_seconds
from msx_frontend.batches.batch_queue import BatchQueue
from msx_frontend.batches.batch_run import BatchRun, RunParts
from msx_frontend.batches.book import BatchBook
from msx_frontend.batches.errors import BatchHasEnded
from msx_frontend.batches.figures import BatchFigures, line_counts, waiting_lines
from msx_frontend.batches.input_lines import LineRules
from msx_frontend.batches.line_pass import CLIENT, HEADERS, LineParts
from msx_frontend.batches.records import BatchHead, KeptBatch
from msx_frontend.batches.rooms import LineTurns
from msx_frontend.deferred.late_runs import KeyOf, LateRuns
from msx_frontend.deferred.tasks import Tasks
from msx_frontend.files.records import dated_id
from msx_frontend.files.shelf import FileShelf
from msx_frontend.store.errors import StoreUnavailable
from msx_net.http.direct import Direct
from msx_net.http.known_head import KnownHead

log = logging.getLogger("msx.batches")

LOOK_EVERY = 60.0
"""Seconds between two looks for batches that another server has made."""
AT_ONCE, AT_ONCE_OF_OWNER = 16, 8
"""Batches that run at a time, and those of one owner: each knows its lines."""
WITH_STALLED = 4
"""How many times as many there are with those that are stalled."""
READERS = 2
"""Threads that read and check inputs: files of many lines hold up other inputs, and nothing else."""


class Batches:
    def __init__(
        self,
        book: BatchBook,
        shelf: FileShelf,
        turns: LineTurns,
        key_of: KeyOf,
        *,
        lines: int,
        longest: int,
        limit: int,
    ) -> None:
        """`lines` of a batch (max_batch_lines), `longest`: bytes of one (max_request_size); `limit`: bytes of a reply
        that comes in parts; `key_of`: see LateRuns."""
        self.book, self.shelf, self._turns, self._key_of = book, shelf, turns, key_of
        self._lines, self._longest, self._limit = lines, longest, limit
        self._runs: LateRuns | None = None
        self._active: dict[str, BatchRun] = {}
        self._queue = BatchQueue()
        self._ended = line_counts()
        self._is_paused = False
        self._readers = ThreadPoolExecutor(READERS, "msx-batch-input")
        self._tasks = Tasks()

    async def load(self) -> None:
        """Know what an earlier server has left. Raises StoreUnavailable."""
        await self.book.look()
        await self.shelf.begin(self._written)
        self._take_up()

    def begin(self, direct: Direct) -> None:
        """Run batches, their lines as requests of this listener."""
        self._runs = LateRuns(direct, self._limit, self._key_of, CLIENT)
        self._next()
        self._tasks.spawn(self._look_again())

    def pause(self) -> None:
        """Start no further lines; those that run go on. The others run after the next start."""
        self._is_paused = True

    @property
    def is_busy(self) -> bool:
        """Whether lines run, or their outcomes are being written."""
        return any(run.is_busy for run in self._active.values())

    async def close(self) -> None:
        """Pause, and stop what runs: it runs after the next start, too. Idempotent."""
        self.pause()
        await self._tasks.close()
        await self.shelf.close()

    async def _look_again(self) -> None:
        """Take up what a server before this one has made meanwhile, while its requests ended."""
        while True:
            await asyncio.sleep(LOOK_EVERY)
            try:
                await self.shelf.look()
                await self.book.look()
            except StoreUnavailable as error:
                log.error("what the server before has left is not known: %s", error)
            self._take_up()
            self._next()

    def _take_up(self) -> None:
        """Let all batches wait that have not ended, and do not run."""
        for one in self.book.open():
            self.shelf.read_by(one.head.input, one.id)
            if one.id not in self._active:
                self._queue.add(one)

    def _written(self) -> list[str]:
        """Ids of files that batches write."""
        return [id for one in self.book.open() for id in (one.head.output, one.head.error) if id]

    # -- what clients ask for --

    async def create(self, asked: BatchRequest, owner: str) -> KeptBatch:
        """Raises UnknownFile, BadRequest, TooManyBatches, ServiceUnavailable."""
        self._known(asked.endpoint)
        file = await self.shelf.find(asked.input_file_id, owner)
        if file.head.purpose != "batch":
            raise BadRequest(f"input_file_id: {file.id} has the purpose {file.head.purpose}, not batch.")
        id = dated_id("batch_")
        self.shelf.read_by(file.id, id)
        return await self._tasks.to_the_end(self._create(id, asked, owner))

    async def _create(self, id: str, asked: BatchRequest, owner: str) -> KeptBatch:
        end = time.time() + window_seconds(asked.completion_window)
        head = BatchHead(
            endpoint=asked.endpoint,
            input=asked.input_file_id,
            window=asked.completion_window,
            end=end,
            metadata=asked.metadata,
            output_seconds=None if asked.output_expires_after is None else asked.output_expires_after.seconds,
        )
        try:
            batch = await self.book.add(id, owner, head, self.shelf.keeps_until(asked.input_file_id, end))
        except BaseException:
            self.shelf.read_no_more(head.input, id)
            raise
        self._queue.add(batch)
        self._next()
        return batch

    async def find(self, id: str, owner: str) -> KeptBatch:
        """How it stands now. Raises UnknownBatch, StoreUnavailable."""
        return self._now(await self.book.find(id, owner))

    def batches(self, owner: str | None) -> list[KeptBatch]:
        """Batches of this owner, or of all, the oldest first."""
        return [self._now(one) for one in self.book.batches(owner)]

    def figures(self) -> BatchFigures:
        running = self._turns.running
        waiting = waiting_lines((self._now(one).head for one in self.book.open()), running)
        return BatchFigures(self.book.states, waiting, running, self._ended, self.shelf.count, self.shelf.size)

    def _now(self, batch: KeptBatch) -> KeptBatch:
        run = self._active.get(batch.id)
        return batch if run is None else run.batch._replace(head=run.head)

    async def cancel(self, id: str, owner: str) -> KeptBatch:
        """Raises UnknownBatch, BatchHasEnded, ServiceUnavailable: where the next server runs it."""
        found = await self.book.find(id, owner)
        if found.has_ended:
            raise BatchHasEnded(id, found.head.state)
        if id not in self._active and self._is_paused:
            raise ServiceUnavailable("The server is stopping: cancel the batch when the next one answers.")
        run = self._active.get(id) or self._start(found)
        await self._tasks.to_the_end(run.cancel())
        return await self.find(id, owner)

    def _known(self, endpoint: str) -> KnownHead:
        """Raises BadRequest where no model answers the path, ServiceUnavailable before the server has begun."""
        if self._runs is None:
            raise ServiceUnavailable("The server is starting; ask again when it is ready.")
        known = None
        if endpoint.startswith("/") and endpoint.isascii() and "?" not in endpoint:
            known = self._runs.know(endpoint.encode(), HEADERS)
        if known is None or known.match.is_management:
            raise BadRequest(f"endpoint: no model answers POST {endpoint[:100]}, with bodies of JSON.")
        return known

    # -- which batches run --

    def _next(self) -> None:
        """Begin batches while there is a place."""
        while self._runs is not None and not self._is_paused:
            every = [run.batch.owner for run in self._active.values()]
            moving = [run.batch.owner for run in self._active.values() if not run.is_stalled]
            if len(moving) >= AT_ONCE or len(every) >= AT_ONCE * WITH_STALLED:
                return
            busy = _with_all(moving, AT_ONCE_OF_OWNER) | _with_all(every, AT_ONCE_OF_OWNER * WITH_STALLED)
            if (id := self._queue.take(busy)) is None:
                return
            if (batch := self.book.open_one(id)) is not None:
                self._start(batch)

    def _start(self, batch: KeptBatch) -> BatchRun:
        self._queue.drop(batch.id)
        run = self._active[batch.id] = BatchRun(batch, self._parts_of(batch))
        self._tasks.spawn(self._follow(run))
        return run

    async def _follow(self, run: BatchRun) -> None:
        try:
            await run.run()
        finally:
            del self._active[run.batch.id]
        self.shelf.read_no_more(run.batch.head.input, run.batch.id)
        self._next()

    def _parts_of(self, batch: KeptBatch) -> RunParts:
        endpoint = batch.head.endpoint
        if self._runs is None:
            raise ServiceUnavailable("The server is starting; ask again when it is ready.")
        known = self._runs.know(endpoint.encode(), HEADERS)
        names = {} if known is None else known.match.names
        lines = LineParts(batch.id, batch.owner, endpoint, names, self._runs, self._turns, self._may_start)
        rules = LineRules(endpoint, self._longest, self._lines)
        return RunParts(self.book, self.shelf, rules, lines, self._readers, self._ended)

    def _may_start(self) -> bool:
        return not self._is_paused


def _with_all(owners: list[str], most: int) -> set[str]:
    """Owners that have as many as one may."""
    return {owner for owner, count in Counter(owners).items() if count >= most}
