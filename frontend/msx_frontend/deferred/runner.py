"""Runs jobs: those that wait, some at a time, and each again that a full or stopping server did not answer."""

from __future__ import annotations

import time
from collections.abc import Collection
from functools import partial

from msgspec import structs

from msx_core.service_errors import DeadlineExceeded, RequestCancelled, ServiceError, ServiceUnavailable
from msx_frontend.deferred.book import Accepted, JobBook, Kept, WantedJob
from msx_frontend.deferred.callbacks.callbacks import Callbacks
from msx_frontend.deferred.callbacks.none import NoCallbacks
from msx_frontend.deferred.elsewhere import JobsElsewhere
from msx_frontend.deferred.ends import JobEnds, failure
from msx_frontend.deferred.entry import Entry
from msx_frontend.deferred.fair_queue import FairQueue
from msx_frontend.deferred.figures import EndCounts, JobFigures, size_of
from msx_frontend.deferred.late_runs import KeyOf, LateRuns
from msx_frontend.deferred.records import Deferred, LateReply
from msx_frontend.deferred.retries import Retries
from msx_frontend.deferred.tasks import Tasks
from msx_frontend.deferred.uncollected import uncollected
from msx_frontend.store.errors import StoreUnavailable
from msx_frontend.store.records import DAY
from msx_net.http.direct import Direct
from msx_net.http.failures import reported

CLIENT = "job"
"""Stands for the client's address in the access log."""


class DeferredJobs:
    def __init__(
        self, book: JobBook, at_once: int, limit: int, key_of: KeyOf, callbacks: Callbacks | None = None
    ) -> None:
        """`at_once`: jobs that run at a time; `limit`, `key_of`: see LateRuns; `callbacks` is None where none are
        sent."""
        self.book, self.callbacks = book, callbacks or NoCallbacks()
        self._counts = EndCounts()
        self.ends = JobEnds(book, [self._counts, self.callbacks])
        self._at_once, self._limit, self._key_of = at_once, limit, key_of
        self._runs: LateRuns | None = None
        self._entries: dict[str, Entry] = {}
        self._turns = FairQueue[Entry]()
        self._elsewhere = JobsElsewhere(book)
        self._last = 0
        """The number of the last job that was taken up from the store."""
        self._retries = Retries(self._queue)
        self._running, self._is_paused = 0, False
        self._tasks = Tasks()

    async def begin(self, direct: Direct, elsewhere: Collection[str] = ()) -> None:
        """Take up the jobs that an earlier server has accepted, and run them as requests of this listener; but for
        those that run `elsewhere`."""
        self._runs = LateRuns(direct, self._limit, self._key_of, CLIENT)
        with uncollected():
            await self._take_up(elsewhere)
        self._next()
        await self.callbacks.begin()

    @property
    def running(self) -> list[str]:
        """Jobs whose turn it is."""
        return [entry.id for entry in self._entries.values() if entry.head.state == "running"]

    async def look_elsewhere(self, *, over: bool) -> None:
        """Look which jobs another server has ended, and which it has accepted. `over`: it runs none any more, so that
        those that have not ended run here. Raises StoreUnavailable."""
        await self._take_up()
        for entry, kept in await self._elsewhere.ended():
            self._ended_elsewhere(entry, kept)
        for entry in self._elsewhere.take_all() if over else ():
            entry.head.state = "queued"
            self._queue(entry)

    async def _take_up(self, elsewhere: Collection[str] = ()) -> None:
        """Add the open jobs of the store that were accepted since the last look."""
        while (found := await self.book.open_jobs(self._last)).jobs:
            self._last = found.last
            for kept in found.jobs:
                self.add(kept, runs=kept.id in elsewhere)

    def pause(self) -> None:
        """Start no further jobs; those that run go on. The others run after the next start."""
        self._runs, self._is_paused = None, True
        self.callbacks.pause()
        for entry in self._entries.values():
            entry.changed()

    async def wait(self, entry: Entry) -> None:
        """Returns at the next change of the job. Raises ServiceUnavailable where there will be none before the next
        start, so that who waits for it does not keep a server from its end."""
        if self._is_paused and entry.head.state == "queued":
            raise ServiceUnavailable("The server is stopping: the job runs after its next start.")
        await entry.wait()

    @property
    def is_busy(self) -> bool:
        """Whether jobs run, or their replies are being written."""
        return self._running > 0

    async def close(self) -> None:
        """Pause, and stop those that run: they run after the next start, too. Idempotent."""
        self.pause()
        for entry in list(self._entries.values()):
            if entry.sink is not None and entry.sink.job is not None:
                entry.sink.job.cancel(ServiceUnavailable("The server is shutting down."))
        await self._tasks.close()
        await self.callbacks.close()

    async def accept(self, asked: Deferred, wanted: WantedJob) -> Accepted:
        """Write the request to the disk, to be run: also where the client leaves. Raises as `JobBook.accept` does."""

        async def accept() -> Accepted:
            accepted = await self.book.accept(asked, wanted)
            if accepted.is_new:
                self.add(accepted.job)
            return accepted

        return await self._tasks.to_the_end(accept())

    def add(self, kept: Kept, *, runs: bool = False) -> Entry:
        """A job that was accepted. During the start both its request and `begin` add it. `runs`: another server runs
        it."""
        if (known := self._entries.get(kept.id)) is not None:
            return known
        head = structs.replace(kept.head, state="running" if runs else "queued")  # its own: `kept` stays as it was
        entry = self._entries[kept.id] = Entry(kept.id, kept.owner, kept.created, head)
        for listener in self.ends.listeners:
            listener.added(entry)
        if runs:
            self._elsewhere.add(entry)
        else:
            self._queue(entry)
        return entry

    def find(self, id: str, owner: str) -> Entry | None:
        """None for a job that has ended, that there is not, or that is another owner's."""
        entry = self._entries.get(id)
        return entry if entry is not None and entry.owner == owner else None

    def place(self, entry: Entry) -> int:
        """How many jobs run before it, at most."""
        return self._turns.place(entry)

    def figures(self) -> JobFigures:
        now, oldest = time.time(), next(iter(self._entries.values()), None)
        running = self._running + len(self._elsewhere)
        return JobFigures(
            queued=max(len(self._entries) - running, 0),
            running=running,
            ended=self._counts.counts,
            oldest=0.0 if oldest is None else max(now - oldest.created, 0.0),
            size=size_of(self.book.path),
            callbacks=self.callbacks.waiting,
            tries=self.callbacks.tries,
        )

    async def cancel(self, entry: Entry) -> bool:
        """Also where the client leaves. False for a job that has ended. Raises StoreUnavailable; then it goes on, or
        has the reply that came. Raises ServiceUnavailable for a job that another server runs."""
        if entry in self._elsewhere:
            raise ServiceUnavailable("The server before this one runs the job until the upgrade is over: ask again.")
        return await self._tasks.to_the_end(self._cancel(entry))

    async def delete(self, id: str, owner: str) -> bool:
        """Forget a job that has ended. False where there is no such job. Raises StoreUnavailable."""
        if not await self.book.delete(id, owner):
            return False
        self.callbacks.forgotten(id)
        return True

    async def _cancel(self, entry: Entry) -> bool:
        is_cancelled = await self.ends.cancel(entry)
        sink, entry.sink = entry.sink, None
        if sink is not None:
            sink.fail(RequestCancelled())  # which also cancels what it waits for, and gives its turn to another
        self._forget(entry)
        return is_cancelled

    # -- one job --

    def _queue(self, entry: Entry) -> None:
        self._turns.add(entry)
        self._next()

    def _next(self) -> None:
        while self._running < self._at_once and self._runs is not None:
            if (entry := self._turns.take()) is None:
                return
            self._running += 1
            entry.head.state = "running"
            self._tasks.spawn(self._run(entry, self._runs))

    async def _run(self, entry: Entry, runs: LateRuns) -> None:
        try:
            await self._begin(entry, runs)
        except StoreUnavailable as error:
            self._over(entry, error)
        except Exception as error:
            self._tasks.spawn(self._end(entry, failure(entry, reported(error, entry.id))))

    async def _begin(self, entry: Entry, runs: LateRuns) -> None:
        asked = await self.book.request(entry.id, entry.owner)
        if asked is None and entry.is_open:
            self._ended_elsewhere(entry, await self.book.find(entry.id, entry.owner))
        if asked is None or not entry.is_open:
            self._over(entry, None)
            return
        entry.head.started = time.time()
        sink = entry.sink = runs.prepare(entry.id, asked, partial(self._ended, entry), entry.changed)
        entry.changed()
        if time.time() > entry.created + self.book.days * DAY:
            sink.fail(DeadlineExceeded(f"The job could not be run for {self.book.days:g} days (jobs_days)."))
        else:
            runs.submit(sink, entry.owner, asked.body)

    def _ended(self, entry: Entry, reply: LateReply, error: ServiceError | None) -> None:
        if not entry.is_open:
            self._running -= 1
            self._next()
        elif entry.tries.goes_on(error):
            self._over(entry, error)
        else:
            self._retries.answered(entry.head.path)
            self._tasks.spawn(self._end(entry, reply))

    def _ended_elsewhere(self, entry: Entry, kept: Kept | None) -> None:
        """Another server has ended the job; `kept` is None where it was forgotten there."""
        entry.head = structs.replace(entry.head, state="done") if kept is None else kept.head
        self._forget(entry)
        self.callbacks.ended(entry)  # the other server wrote it, and sends none any more

    def _over(self, entry: Entry, error: ServiceError | None) -> None:
        """Give its turn to another; with an error it is tried again."""
        self._running -= 1
        entry.sink, entry.head.state = None, "queued" if entry.is_open else entry.head.state
        if error is not None and entry.is_open and self._runs is not None:
            self._retries.add(entry, entry.tries.wait())
        entry.changed()
        self._next()

    async def _end(self, entry: Entry, reply: LateReply) -> None:
        """Its turn lasts until its reply is on the disk."""
        try:
            await self.ends.keep(entry, reply)
        finally:
            self._running -= 1
            self._forget(entry)
            self._next()

    def _forget(self, entry: Entry) -> None:
        self._entries.pop(entry.id, None)
        self._turns.drop(entry)
        self._elsewhere.drop(entry)
        self._retries.drop(entry)
        entry.changed()
