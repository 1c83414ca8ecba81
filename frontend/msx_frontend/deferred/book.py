"""The jobs of the store, each change on the disk before it is told."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec import structs

from msx_frontend.deferred.errors import KeyOfAnotherBody, ReplyNotKept
from msx_frontend.deferred.records import (
    CALLBACK,
    ENDLESS,
    IDEMPOTENCY,
    KIND,
    REPLY,
    REQUEST,
    Deferred,
    Delivery,
    JobHead,
    LateReply,
    body_digest,
    created_of,
    decode_head,
    decode_reply,
    decode_request,
    encode,
    idempotency_id,
    new_job_id,
)
from msx_frontend.store.records import DAY, Bounds, Record, Records
from msx_frontend.store.spare import REPLIES, check_spare
from msx_frontend.store.store import Store

SHORT = 1000
"""Bytes of a reply that is always kept: each failure is, so that no job ends without a word."""
SHARE = 0.5
"""The part of all jobs, and of their bytes, that one named key may have."""

AT_ONCE = 200
"""Jobs that are read at once, so that neither the loop nor the store is held by all of them."""

Also = Callable[[Records, float], None]
"""Changes further records within a change; the second argument is until when its job is kept."""


class WantedJob(NamedTuple):
    """A job that is to be accepted. `path`: of its route; `owner`: the name of the key that makes it."""

    path: str
    owner: str
    key: str = ""
    """Its Idempotency-Key, or ""."""
    callback: str = ""
    """The URL that is told of its end, or ""."""
    asker: str = ""
    """Who asks for the callback."""
    parts: Mapping[str, bytes] = {}  # a NamedTuple's default, which nothing changes
    """Further parts of its record."""


class Kept(NamedTuple):
    """A job as it is on the disk. `created` and `expires` in seconds since the epoch."""

    id: str
    owner: str
    created: float
    expires: float
    head: JobHead

    @property
    def has_ended(self) -> bool:
        return self.expires < ENDLESS


class Accepted(NamedTuple):
    """`is_new` is False where the same request was accepted before."""

    job: Kept
    is_new: bool


class KeptParts(NamedTuple):
    """A job, and parts of its record: each is empty where there is none."""

    job: Kept
    parts: list[bytes]


class AnsweredJob(NamedTuple):
    """`reply` is None where there is none."""

    job: Kept
    reply: LateReply | None


class OpenJobs(NamedTuple):
    """Jobs that have not ended, and the number of the last of them."""

    jobs: list[Kept]
    last: int


class JobBook:
    """Methods raise StoreUnavailable."""

    def __init__(self, store: Store, days: float, most: int, size: int) -> None:
        """`days` for which a reply is kept; `most` jobs of `size` bytes."""
        self._store, self.days = store, days
        self._bounds = Bounds(most, size, "max_jobs, jobs_size", share=SHARE)

    @property
    def path(self) -> Path:
        """The file of the store."""
        return self._store.path

    async def accept(self, asked: Deferred, wanted: WantedJob) -> Accepted:
        """Write the request to the disk. Raises KeyOfAnotherBody, and StoreUnavailable where there is no room."""
        owner, key = wanted.owner, wanted.key
        parts = {REQUEST: encode(asked), **wanted.parts}
        twin = idempotency_id(owner, asked.target, key) if key else ""
        record = _record(wanted, twin)

        def write(records: Records) -> Accepted:
            digest = body_digest(asked.body) if twin else b""
            if twin and (known := self._known(records, twin, owner, digest)) is not None:
                return Accepted(known, is_new=False)
            check_spare(self.path, len(parts[REQUEST]))
            records.add(record, parts, self._bounds)
            if twin:
                records.delete(IDEMPOTENCY, twin, owner)  # of a job that has expired
                note = structs.replace(record, kind=IDEMPOTENCY, id=twin, head=digest + record.id.encode())
                records.add(note, {}, self._bounds)  # which has room: there are no more of them, nor larger ones
            return Accepted(_kept(record), is_new=True)

        return await self._store.run(write)

    async def find(self, id: str, owner: str) -> Kept | None:
        found = await self._store.find(KIND, id, owner)
        return None if found is None else _kept(found)

    async def find_all(self, ids: Sequence[tuple[str, str]]) -> list[Kept | None]:
        """Find several, by their ids and owners."""

        def read(records: Records) -> list[Kept | None]:
            found = [records.find(KIND, id, owner, time.time()) for id, owner in ids]
            return [None if one is None else _kept(one) for one in found]

        return await self._store.run(read)

    async def newest(self, owner: str | None, behind: str, most: int, *, is_open: bool | None = None) -> list[Kept]:
        """Jobs of an owner, or of all, the newest first, behind the one with this id, or, where that is gone, from
        the second in which it was made; with `is_open` those alone that have not ended, or those that have."""
        open_after = math.nextafter(ENDLESS, 0.0)
        ends = (open_after if is_open else time.time(), open_after if is_open is False else ENDLESS)
        until = (created_of(behind) or 0.0) + 1

        def read(records: Records) -> list[Kept]:
            return [_kept(record) for record in records.newest(KIND, owner, behind, most, ends, until)]

        return await self._store.run(read)

    async def owner_of(self, id: str) -> str | None:
        """None where there is no such job."""
        return await self._store.run(lambda records: records.owner_of(KIND, id, time.time()))

    async def request(self, id: str, owner: str) -> Deferred | None:
        found = await self.parts(id, owner, REQUEST)
        return decode_request(found.parts[0]) if found is not None and found.parts[0] else None

    async def parts(self, id: str, owner: str, *names: str) -> KeptParts | None:
        """None where there is no such job."""
        return await self._store.run(lambda records: _parts(records, id, owner, names))

    async def answered(self, id: str, owner: str) -> AnsweredJob | None:
        """None where there is no such job."""

        def read(records: Records) -> AnsweredJob | None:
            found = _parts(records, id, owner, [REPLY])
            if found is None:
                return None
            return AnsweredJob(found.job, decode_reply(found.parts[0]) if found.parts[0] else None)

        return await self._store.run(read)

    async def end(self, id: str, owner: str, head: JobHead, reply: LateReply | None, also: Also) -> JobHead:
        """Write how it ended, and what `also` changes then, and forget what was asked. Returns how it stands: as
        another server wrote it that ended it first. Raises ReplyNotKept; then nothing is changed."""
        now = time.time()
        expires = now + self.days * DAY

        def write(records: Records) -> JobHead:
            found = records.find(KIND, id, owner, 0.0)
            if found is None or found.expires < ENDLESS:
                return head if found is None else decode_head(found.head)
            records.change(KIND, id, encode(head), expires)
            if head.note:
                records.keep_until(IDEMPOTENCY, head.note, expires)
            for part in (REQUEST, REPLY):
                records.drop_part(KIND, id, part)
            if reply is not None:
                self._add_reply(records, id, encode(reply), now)
            also(records, expires)
            return head

        return await self._store.run(write)

    async def delete(self, id: str, owner: str) -> bool:
        """Together with its Idempotency-Key and its callback. False where there is no such job."""

        def write(records: Records) -> bool:
            found = records.find(KIND, id, owner, time.time())
            if found is None:
                return False
            if note := decode_head(found.head).note:
                records.delete(IDEMPOTENCY, note, owner)
            records.delete(CALLBACK, id, owner)
            return records.delete(KIND, id, owner)

        return await self._store.run(write)

    async def open_jobs(self, behind: int = 0) -> OpenJobs:
        """Some of the jobs that have not ended, the oldest first: those behind the number `behind`."""

        def read(records: Records) -> OpenJobs:
            found = records.lasting(KIND, ENDLESS, behind, AT_ONCE)
            return OpenJobs([_kept(record) for _, record in found], found[-1][0] if found else behind)

        return await self._store.run(read)

    def _add_reply(self, records: Records, id: str, data: bytes, now: float) -> None:
        if len(data) > SHORT:
            if not records.may_grow(KIND, len(data), self._bounds, now):
                raise ReplyNotKept(len(data), self._bounds.size)
            check_spare(self.path, len(data), REPLIES)
        records.add_part(KIND, id, REPLY, data)

    def _known(self, records: Records, twin: str, owner: str, digest: bytes) -> Kept | None:
        """The job of an earlier request with this Idempotency-Key."""
        now = time.time()
        note = records.find(IDEMPOTENCY, twin, owner, now)
        if note is None:
            return None
        if note.head[: len(digest)] != digest:
            raise KeyOfAnotherBody
        found = records.find(KIND, note.head[len(digest) :].decode(), owner, now)
        return None if found is None else _kept(found)


def _record(wanted: WantedJob, note: str) -> Record:
    owner, callback = wanted.owner, Delivery(url=wanted.callback) if wanted.callback else None
    head = encode(JobHead(path=wanted.path, note=note, callback=callback, asker=wanted.asker if callback else ""))
    return Record(kind=KIND, id=new_job_id(), owner=owner, created=time.time(), expires=ENDLESS, head=head)


def _parts(records: Records, id: str, owner: str, names: Sequence[str]) -> KeptParts | None:
    found = records.find(KIND, id, owner, time.time())
    if found is None:
        return None
    return KeptParts(_kept(found), [records.part(KIND, id, name) or b"" for name in names])


def _kept(record: Record) -> Kept:
    return Kept(record.id, record.owner, record.created, record.expires, decode_head(record.head))
