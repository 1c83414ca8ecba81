"""Answers of `/jobs`."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import Literal

import msgspec

from msx_core.replies.stream_heartbeat import is_event_stream
from msx_core.service_errors import BadRequest, ResourceNotFound, ServiceUnavailable
from msx_frontend.apis.jobs.events import growing, last_event, whole
from msx_frontend.apis.jobs.listing import JobPage, PageAsked, page_of
from msx_frontend.apis.jobs.status import JobStatus, status_of
from msx_frontend.deferred.book import Kept
from msx_frontend.deferred.entry import Entry
from msx_frontend.deferred.errors import NO_JOBS, JobGone, UnknownJob
from msx_frontend.deferred.records import LateReply, created_of
from msx_frontend.deferred.runner import DeferredJobs
from msx_frontend.deferred.sink import LateSink
from msx_frontend.store.records import DAY
from msx_net.http.family import JSON, Reply
from msx_net.http.request import Request
from msx_net.http.wire import JSON_HEADERS
from msx_net.keys import owner_of_key

LONGEST_WAIT = 60.0
"""Seconds."""
AGAIN = "1"
"""Seconds after which a client may ask again for a result."""
EVENT_STREAM = [("content-type", "text/event-stream; charset=utf-8")]
LAST_EVENT = b"last-event-id"


class RemovedJob(msgspec.Struct):
    id: str
    state: Literal["cancelled", "forgotten"]


class JobAnswers:
    """Methods raise UnknownJob, JobGone and StoreUnavailable."""

    def __init__(self, runner: DeferredJobs | None, *, of_all: bool = False) -> None:
        """`runner` is None where requests are not deferred; `of_all`: for operators, who see the jobs of all keys."""
        self._runner, self._of_all = runner, of_all

    async def list(self, request: Request) -> Reply:
        asked = PageAsked.of(request.query)
        owner = None if self._of_all else owner_of_key(request.call.key)
        return _json(await page_of(self._jobs, asked, owner))

    async def show(self, request: Request) -> Reply:
        id, owner = await self._whose(request)
        wait = _wait(request.query.get("wait", "0"))
        if wait and (entry := self._jobs.find(id, owner)) is not None:
            await self._until_ended(entry, wait)
        return _json(await self._status(id, owner))

    async def result(self, request: Request) -> Reply:
        id, owner = await self._whose(request)
        if self._jobs.find(id, owner) is not None:
            reply = _json(await self._status(id, owner))
            return reply._replace(status=202, headers=[*JSON, ("retry-after", AGAIN)])
        _, late = await self._ended(id, owner)
        return Reply(late.body, late.status, late.headers)

    async def events(self, request: Request) -> Reply:
        id, owner = await self._whose(request)
        last = last_event(request.call.header(LAST_EVENT))
        if (entry := self._jobs.find(id, owner)) is not None and (sink := await self._begun(entry)) is not None:
            _check_events(sink.is_events)
            last.check(entry.head.run)
            return Reply(growing(entry, sink, last.number), 200, EVENT_STREAM)
        kept, late = await self._ended(id, owner)
        _check_events(is_event_stream(late.headers))
        last.check(kept.head.run)
        return Reply(whole(late.body, kept.head.run, last.number), 200, EVENT_STREAM)

    async def remove(self, request: Request) -> Reply:
        id, owner = await self._whose(request)
        if (entry := self._jobs.find(id, owner)) is not None and await self._jobs.cancel(entry):
            return _json(RemovedJob(id, "cancelled"))
        if not await self._jobs.delete(id, owner):
            raise self._missing(id)
        return _json(RemovedJob(id, "forgotten"))

    @property
    def _jobs(self) -> DeferredJobs:
        if self._runner is None:
            raise ResourceNotFound(NO_JOBS)
        return self._runner

    async def _whose(self, request: Request) -> tuple[str, str]:
        """A job's id and owner."""
        id = request.names["id"]
        owner = await self._jobs.book.owner_of(id) if self._of_all else owner_of_key(request.call.key)
        if owner is None:
            raise self._missing(id)
        return id, owner

    async def _status(self, id: str, owner: str) -> JobStatus:
        entry = self._jobs.find(id, owner)  # first: one that ends meanwhile knows it, what was read before does not
        kept = await self._jobs.book.find(id, owner)
        if kept is None:
            raise self._missing(id)
        return status_of(kept, entry, self._jobs, of_all=self._of_all)

    async def _ended(self, id: str, owner: str) -> tuple[Kept, LateReply]:
        """A job that has ended, and its reply."""
        found = await self._jobs.book.answered(id, owner)
        if found is not None and found.job.head.state == "cancelled":
            raise JobGone("The job was cancelled.")
        if found is None or found.reply is None:
            raise self._missing(id)
        return found.job, found.reply

    async def _begun(self, entry: Entry) -> LateSink | None:
        """The sink of a reply that comes in parts; None where the job ended without one."""
        while entry.is_open:
            if entry.sink is not None and entry.sink.has_begun:
                return entry.sink
            await self._jobs.wait(entry)
        return None

    async def _until_ended(self, entry: Entry, wait: float) -> None:
        async def ended() -> None:
            while entry.is_open:
                await self._jobs.wait(entry)

        with suppress(asyncio.TimeoutError, ServiceUnavailable):
            await asyncio.wait_for(ended(), wait)

    def _missing(self, id: str) -> UnknownJob | JobGone:
        created, days = created_of(id), self._jobs.book.days
        if created is not None and created + days * DAY < time.time():
            return JobGone(f"The reply of the job was kept for {days:g} days (jobs_days).")
        return UnknownJob(id)


def _wait(text: str) -> float:
    try:
        wait = float(text)
    except ValueError:
        wait = -1.0
    if not 0 <= wait <= LONGEST_WAIT:
        raise BadRequest(f"wait: expected seconds from 0 to {LONGEST_WAIT:g}, not {text[:20]!r}.")
    return wait


def _check_events(is_events: bool) -> None:
    if not is_events:
        raise BadRequest("The reply of this job is not a stream of events: ask for its result.")


def _json(value: JobStatus | JobPage | RemovedJob) -> Reply:
    return Reply(msgspec.json.encode(value), 200, JSON_HEADERS)
