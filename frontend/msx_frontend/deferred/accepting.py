"""Accepts requests that are deferred: written to the disk, then answered with 202."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

import msgspec

from msx_core.service_errors import ServiceError
from msx_frontend.deferred.book import Accepted, WantedJob
from msx_frontend.deferred.callbacks.askers import asker_of
from msx_frontend.deferred.errors import KeyInUse, WrongIdempotencyKey
from msx_frontend.deferred.records import CALLBACK_HEADER, Deferred, kept_headers
from msx_frontend.deferred.runner import DeferredJobs
from msx_net.http.failures import reported
from msx_net.http.family import Family, ReplySink
from msx_net.http.head import Head
from msx_net.http.wire import JSON_HEADERS
from msx_net.keys import ClientKey, owner_of_key

LONGEST_KEY = 255
"""Characters of an Idempotency-Key."""
ACCEPTED = 202
PREFERENCE = "respond-async"

Twin = tuple[str, bytes, str]
"""Owner, path and query, and Idempotency-Key: two requests with the same three are one job."""


class Wished(NamedTuple):
    """The headers of a request for the job that it becomes; "" where one is missing."""

    path: str
    key: str
    """The Idempotency-Key."""
    callback: str
    """The URL that is told of the end."""
    client: str
    """The address that it came from."""


def is_deferred(prefer: bytes) -> bool:
    """Whether the header Prefer asks for it. https://www.rfc-editor.org/rfc/rfc7240#section-4.1"""
    return any(one.split(b";")[0].strip().lower() == PREFERENCE.encode() for one in prefer.split(b","))


class Acceptance:
    """Makes the templates of requests that are deferred."""

    def __init__(self, runner: DeferredJobs) -> None:
        self._runner = runner
        self._begun: set[Twin] = set()
        """Requests with an Idempotency-Key that are being written."""
        self._tasks: set[asyncio.Task[None]] = set()

    def template(self, head: Head, family: Family, client: str) -> DeferredTemplate | None:
        """None for a request that is answered now."""
        if head.method != "POST" or not is_deferred(head.prefer):
            return None
        unpacked = not family.takes_as_sent
        target = head.target.encode("latin-1")
        headers = kept_headers(head.raw_headers, unpacked=unpacked)
        wished = Wished(head.path, head.header(b"idempotency-key"), head.header(CALLBACK_HEADER), client)
        return DeferredTemplate(self, wished, Deferred(target, headers, b""))

    def begin(self, asked: Deferred, wished: Wished, owner: str, sink: ReplySink) -> None:
        """Raises WrongIdempotencyKey, KeyInUse, WrongCallback, TooManyCallbacks."""
        key = wished.key
        if len(key) > LONGEST_KEY:
            raise WrongIdempotencyKey(LONGEST_KEY)
        if wished.callback:
            self._runner.callbacks.check(wished.callback, owner)
        twin = owner, asked.target, key
        if key and twin in self._begun:
            raise KeyInUse
        if key:
            self._begun.add(twin)
        sink.job = Uncancelled()
        task = asyncio.get_running_loop().create_task(self._accept(asked, wished, twin, sink))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _accept(self, asked: Deferred, wished: Wished, twin: Twin, sink: ReplySink) -> None:
        """Goes on to the end, also where the client has left."""
        owner, _, key = twin
        try:
            asker = asker_of(owner, wished.client)
            accepted = await self._runner.accept(asked, WantedJob(wished.path, owner, key, wished.callback, asker))
        except Exception as error:
            sink.fail(reported(error, ""))
        else:
            sink.answer(ACCEPTED, "", _headers(accepted), _body(accepted))
        finally:
            self._begun.discard(twin)


class DeferredTemplate:
    """A request that is accepted instead of answered."""

    def __init__(self, acceptance: Acceptance, wished: Wished, asked: Deferred) -> None:
        self._acceptance, self._wished, self._asked = acceptance, wished, asked
        self.key: ClientKey | None = None
        self.asker: ClientKey | None = None

    def submit(self, id: str, body: bytes, sink: ReplySink) -> None:
        owner = owner_of_key(self.asker)
        asked = Deferred(self._asked.target, self._asked.headers, body)
        self._acceptance.begin(asked, self._wished, owner, sink)


class Uncancelled:
    """A job that goes on without its client."""

    credit = None

    def cancel(self, error: ServiceError | None = None) -> None:
        pass


def _headers(accepted: Accepted) -> list[tuple[str, str]]:
    return [*JSON_HEADERS, ("location", f"/jobs/{accepted.job.id}"), ("preference-applied", PREFERENCE)]


def _body(accepted: Accepted) -> bytes:
    return msgspec.json.encode({"id": accepted.job.id, "state": accepted.job.head.state})
