"""Runs jobs: those that wait, some at a time, and each again that a full or stopping server did not answer."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, TypeVar

import msgspec

from msx_core.service_errors import (
    DeadlineExceeded,
    RequestCancelled,
    ResourceNotFound,
    ServiceError,
    ServiceUnavailable,
    WorkerDied,
)
from msx_frontend.deferred.book import Accepted, JobBook, Kept
from msx_frontend.deferred.entry import Entry
from msx_frontend.deferred.errors import ReplyNotKept
from msx_frontend.deferred.records import CANCELLED, Deferred, JobHead, LateReply
from msx_frontend.deferred.retries import Retries
from msx_frontend.deferred.sink import LateSink
from msx_frontend.store.errors import StoreUnavailable
from msx_frontend.store.records import DAY
from msx_net.http.direct import Direct
from msx_net.http.failures import reported
from msx_net.http.family import JSON
from msx_net.http.job_reply import begin
from msx_net.http.known_head import KnownHead
from msx_net.http.wire import error_bytes
from msx_net.keys import ClientKey

log = logging.getLogger("msx.jobs")

AGAIN_AFTER, AGAIN_AT_MOST = 0.5, 10.0
"""Seconds until a job is tried again that found no room, of few: the first time, and after many."""
MOST_DEATHS = 3
"""How often a job may end a worker: the reply of the last time is its own."""
CLIENT = "job"
"""Stands for the client's address in the access log."""

T = TypeVar("T")


class DeferredJobs:
    def __init__(self, book: JobBook, at_once: int, limit: int, key_of: Callable[[str], ClientKey | None]) -> None:
        """`limit`: bytes of a stream that is kept; `key_of` the name of a key is that key, or None where none is
        asked for; it raises InvalidKey."""
        self.book = book
        self._at_once, self._limit, self._key_of = at_once, limit, key_of
        self._direct: Direct | None = None
        self._entries: dict[str, Entry] = {}
        self._waiting: deque[Entry] = deque()
        self._retries = Retries(self._queue)
        self._running, self._is_paused = 0, False
        self._number = self._started = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._lasting: set[asyncio.Task[Any]] = set()
        """Tasks that go on without their client."""

    async def begin(self, direct: Direct) -> None:
        """Take up the jobs that an earlier server has accepted, and run them as requests of this listener."""
        self._direct = direct
        for kept in await self.book.open_jobs():
            self.add(kept)
        self._next()

    def pause(self) -> None:
        """Start no further jobs; those that run go on. The others run after the next start."""
        self._direct, self._is_paused = None, True
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
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, *self._lasting, return_exceptions=True)

    async def accept(
        self, asked: Deferred, path: str, owner: str, key: str, further: Mapping[str, bytes] | None = None
    ) -> Accepted:
        """Write the request to the disk, to be run: also where the client leaves. Raises as `JobBook.accept` does."""

        async def accept() -> Accepted:
            accepted = await self.book.accept(asked, path, owner, key, further)
            if accepted.is_new:
                self.add(accepted.job)
            return accepted

        return await self._without_client(accept())

    def add(self, kept: Kept) -> Entry:
        """A job that was accepted. During the start both its request and `begin` add it."""
        if (known := self._entries.get(kept.id)) is not None:
            return known
        self._number += 1
        entry = self._entries[kept.id] = Entry(kept.id, kept.owner, kept.created, kept.head, self._number)
        entry.head.state = "queued"
        self._queue(entry)
        return entry

    def find(self, id: str, owner: str) -> Entry | None:
        """None for a job that has ended, that there is not, or that is another owner's."""
        entry = self._entries.get(id)
        return entry if entry is not None and entry.owner == owner else None

    def place(self, entry: Entry) -> int:
        """How many jobs run before it, at most."""
        return max(entry.number - self._started - 1, 0) if entry.head.state == "queued" else 0

    async def cancel(self, entry: Entry) -> None:
        """Also where the client leaves. Raises StoreUnavailable; then it goes on, or has the reply that came."""
        await self._without_client(self._cancel(entry))

    async def _cancel(self, entry: Entry) -> None:
        async with entry.writing:
            head = msgspec.structs.replace(entry.head, state="cancelled", ended=time.time(), status=CANCELLED)
            await self.book.end(entry.id, head, None)
            entry.head = head
        sink, entry.sink = entry.sink, None
        if sink is not None:
            sink.fail(RequestCancelled())  # which also cancels what it waits for, and gives its turn to another
        self._forget(entry)

    # -- one job --

    def _queue(self, entry: Entry) -> None:
        self._waiting.append(entry)
        self._next()

    def _next(self) -> None:
        while self._waiting and self._running < self._at_once and self._direct is not None:
            entry = self._waiting.popleft()
            if entry.is_open:
                self._running += 1
                self._started = max(self._started, entry.number)
                self._spawn(self._run(entry, self._direct))

    async def _run(self, entry: Entry, direct: Direct) -> None:
        try:
            await self._begin(entry, direct)
        except StoreUnavailable as error:
            self._over(entry, error)
        except Exception as error:
            self._spawn(self._end(entry, _failure(entry, reported(error, entry.id))))

    async def _begin(self, entry: Entry, direct: Direct) -> None:
        asked = await self.book.request(entry.id, entry.owner)
        if asked is None or not entry.is_open:
            self._over(entry, None)
            return
        entry.head.state, entry.head.started = "running", time.time()
        known = direct.know(b"POST", asked.target, asked.headers, CLIENT, ("", 0), "1.1")
        if known is None:
            raise ResourceNotFound(f"No model answers {entry.head.path} any more.")

        def ended(reply: LateReply, error: ServiceError | None) -> None:
            direct.write_entry(((*known.asked[:-1], reply.status), entry.id, sink.started, time.monotonic()))
            self._ended(entry, reply, error)

        sink = entry.sink = LateSink(entry.id, known, direct.held.hold(), self._limit, ended, entry.changed)
        entry.changed()
        self._submit(entry, sink, known, asked.body)

    def _submit(self, entry: Entry, sink: LateSink, known: KnownHead, body: bytes) -> None:
        try:
            if time.time() > entry.created + self.book.days * DAY:
                raise DeadlineExceeded(f"The job could not be run for {self.book.days:g} days (jobs_days).")
            if known.refusal is not None:
                raise known.refusal
            sink.hold(len(body))
            known.use(self._key_of(entry.owner))
        except Exception as error:
            sink.fail(reported(error, entry.id))
        else:
            begin(known.template, entry.id, body, sink)

    def _ended(self, entry: Entry, reply: LateReply, error: ServiceError | None) -> None:
        if not entry.is_open:
            self._running -= 1
            self._next()
        elif isinstance(error, ServiceUnavailable) or (isinstance(error, WorkerDied) and self._lives(entry)):
            self._over(entry, error)
        else:
            self._retries.answered(entry.head.path)
            self._spawn(self._end(entry, reply))

    @staticmethod
    def _lives(entry: Entry) -> bool:
        """Whether a job that ended a worker is tried again."""
        entry.deaths += 1
        return entry.deaths < MOST_DEATHS

    def _over(self, entry: Entry, error: ServiceError | None) -> None:
        """Give its turn to another; with an error it is tried again."""
        self._running -= 1
        entry.sink, entry.head.state = None, "queued" if entry.is_open else entry.head.state
        if error is not None and entry.is_open and self._direct is not None:
            wait = min(AGAIN_AFTER * 2 ** min(entry.tries, 10), AGAIN_AT_MOST)
            entry.tries += 1
            self._retries.add(entry, wait)
        entry.changed()
        self._next()

    async def _end(self, entry: Entry, reply: LateReply) -> None:
        """Write the reply to the disk, where need be when there is room again: its turn lasts until then."""
        wait = AGAIN_AFTER
        done = msgspec.structs.replace(entry.head, state="done", ended=time.time(), status=reply.status)
        while entry.is_open:
            try:
                await self._write(entry, done, reply)
            except StoreUnavailable as error:
                log.error("the reply of the job %s waits to be kept: %s", entry.id, error)
                await asyncio.sleep(wait)
                wait = min(wait * 2, AGAIN_AT_MOST)
            except ReplyNotKept as error:
                reply = _failure(entry, error)
                done = msgspec.structs.replace(done, status=reply.status)
        self._running -= 1
        self._forget(entry)
        self._next()

    async def _write(self, entry: Entry, done: JobHead, reply: LateReply) -> None:
        """Not for a job that was cancelled while its reply came."""
        async with entry.writing:
            if entry.is_open:
                await self.book.end(entry.id, done, reply)
                entry.head = done

    def _forget(self, entry: Entry) -> None:
        self._entries.pop(entry.id, None)
        self._retries.drop(entry)
        entry.changed()

    async def _without_client(self, work: Coroutine[Any, Any, T]) -> T:
        """Goes on to the end, also where the caller is cancelled."""
        task = asyncio.get_running_loop().create_task(work)
        self._lasting.add(task)
        task.add_done_callback(self._lasting.discard)
        return await asyncio.shield(task)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _failure(entry: Entry, error: ServiceError) -> LateReply:
    """The reply that tells an error, in the form of the family that answers the path, where that is known."""
    if entry.sink is None:
        return LateReply(error.status, [*JSON], error_bytes(error))
    failure = entry.sink.known.family.failure(error)
    return LateReply(failure.status, [*failure.headers], failure.body)
