"""Ends of jobs: on the disk first, then told to all that listen."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Protocol

import msgspec

from msx_core.service_errors import ServiceError
from msx_frontend.deferred.book import JobBook
from msx_frontend.deferred.entry import Entry
from msx_frontend.deferred.errors import ReplyNotKept
from msx_frontend.deferred.records import CANCELLED, JobHead, LateReply, State
from msx_frontend.deferred.tries import Tries
from msx_frontend.store.errors import StoreUnavailable
from msx_frontend.store.records import Records
from msx_net.http.family import JSON
from msx_net.http.wire import error_bytes

log = logging.getLogger("msx.jobs")


class EndListener(Protocol):
    def added(self, entry: Entry) -> None:
        """The job was accepted, by this server or an earlier one."""

    def ending(self, records: Records, entry: Entry, head: JobHead, expires: float) -> None:
        """Change further records, within the change that ends the job. `head`: how it stands then, kept until
        `expires`, in seconds since the epoch. In the store's thread; called again where the disk was full."""

    def ended(self, entry: Entry) -> None:
        """The end is on the disk."""


class JobEnds:
    def __init__(self, book: JobBook, listeners: list[EndListener]) -> None:
        self._book, self.listeners = book, listeners

    async def keep(self, entry: Entry, reply: LateReply) -> None:
        """Write the reply to the disk, where need be when there is room again. Not for a job that was cancelled
        while its reply came."""
        tries = Tries()
        while entry.is_open:
            try:
                await self._end(entry, "done", reply.status, reply)
            except StoreUnavailable as error:
                log.error("the reply of the job %s waits to be kept: %s", entry.id, error)
                await asyncio.sleep(tries.wait())
            except ReplyNotKept as error:
                reply = failure(entry, error)

    async def cancel(self, entry: Entry) -> bool:
        """False for a job that had ended. Raises StoreUnavailable; then it goes on, or has the reply that came."""
        return await self._end(entry, "cancelled", CANCELLED, None)

    async def _end(self, entry: Entry, state: State, status: int, reply: LateReply | None) -> bool:
        async with entry.writing:
            if not entry.is_open:
                return False
            head = msgspec.structs.replace(entry.head, state=state, ended=time.time(), status=status)

            def also(records: Records, expires: float) -> None:
                for listener in self.listeners:
                    listener.ending(records, entry, head, expires)

            entry.head = await self._book.end(entry.id, entry.owner, head, reply, also)
        for listener in self.listeners:
            listener.ended(entry)
        return entry.head is head


def failure(entry: Entry, error: ServiceError) -> LateReply:
    """The reply that tells an error, in the form of the family that answers the path, where that is known."""
    if entry.sink is None:
        return LateReply(error.status, [*JSON], error_bytes(error))
    told = entry.sink.known.family.failure(error)
    return LateReply(told.status, [*told.headers], told.body)
