"""Responses in the background: jobs, which clients know by the ids of their responses."""

from __future__ import annotations

from typing import Any

import msgspec

from msx_frontend.deferred.book import Kept, WantedJob
from msx_frontend.deferred.callbacks.askers import asker_of
from msx_frontend.deferred.records import CALLBACK_HEADER, REPLY, Deferred, LateReply, decode_reply, kept_headers
from msx_frontend.deferred.runner import DeferredJobs
from msx_frontend.deferred.sink import LateSink
from msx_frontend.generation.text_request import TextRequest
from msx_frontend.metrics.timed_sink import TimedSink
from msx_net.keys import owner_of_key

PATH = "/v1/responses"
PREFIX = "resp_"
OUTLINE = "outline"
"""The part of a job that has the response as it was accepted."""
NO_BACKGROUND = "needs jobs=true in the server's config.properties: what runs later is written to the disk"
STATES = {"queued": "queued", "running": "in_progress", "cancelled": "cancelled", "done": "failed"}
"""The status of a response that the model has not answered, by the state of its job."""

Response = dict[str, Any]


def is_late(request: TextRequest) -> bool:
    """Whether a job runs the request."""
    sink = request.sink
    return isinstance(sink.sink if isinstance(sink, TimedSink) else sink, LateSink)


class BackgroundResponses:
    """Methods raise StoreUnavailable."""

    def __init__(self, jobs: DeferredJobs) -> None:
        self._jobs = jobs

    async def accept(self, request: TextRequest, outline: Response) -> Response:
        """Write the request to the disk, to be run, also where the client leaves; returns the response so far."""
        headers = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in request.headers]
        owner, callback = owner_of_key(request.asker), dict(headers).get(CALLBACK_HEADER, b"").decode("latin-1")
        if callback:
            self._jobs.callbacks.check(callback, owner)
        asked = Deferred(PATH.encode(), kept_headers(headers, unpacked=True), request.body)
        parts = {OUTLINE: msgspec.json.encode(outline)}
        accepted = await self._jobs.accept(asked, WantedJob(PATH, owner, "", callback, asker_of(owner, ""), parts))
        return {**outline, **_changes(accepted.job, None)}

    async def find(self, id: str, owner: str) -> bytes | None:
        """The response as JSON; None where no job is known by this id."""
        job = id.removeprefix(PREFIX)
        entry = self._jobs.find(job, owner)  # first: one that ends meanwhile knows it
        found = await self._jobs.book.parts(job, owner, OUTLINE, REPLY)
        if found is None or not found.parts[0]:
            return None
        kept = found.job if entry is None else found.job._replace(head=entry.head)
        return _response(found.parts[0], kept, decode_reply(found.parts[1]) if found.parts[1] else None)

    async def cancel(self, id: str, owner: str) -> bytes | None:
        """The response, whose job is cancelled unless it has ended; None where no job is known by this id."""
        await self._cancel(id, owner)
        return await self.find(id, owner)

    async def delete(self, id: str, owner: str) -> bool:
        """False where no job is known by this id."""
        await self._cancel(id, owner)
        found = await self._jobs.book.parts(id.removeprefix(PREFIX), owner, OUTLINE)
        return found is not None and bool(found.parts[0]) and await self._jobs.delete(found.job.id, owner)

    async def _cancel(self, id: str, owner: str) -> None:
        if (entry := self._jobs.find(id.removeprefix(PREFIX), owner)) is not None:
            await self._jobs.cancel(entry)


class BackgroundReply:
    """Accepts the request, and answers with the response so far."""

    def __init__(self, background: BackgroundResponses, outline: Response) -> None:
        self._background, self._response = background, outline

    def begin(self, request: TextRequest) -> None:
        async def accept() -> None:
            self._response = await self._background.accept(request, self._response)

        def answer() -> None:
            request.answer(self._response, [])

        request.after(accept, answer)


def _response(outline: bytes, job: Kept, reply: LateReply | None) -> bytes:
    """The response as JSON: its texts, which may be long, are not read."""
    if reply is not None and reply.status == 200:
        return reply.body
    return msgspec.json.encode({**msgspec.json.decode(outline, type=dict[str, msgspec.Raw]), **_changes(job, reply)})


def _changes(job: Kept, reply: LateReply | None) -> Response:
    """Members of the response that have changed since it was accepted."""
    changes: Response = {"id": f"{PREFIX}{job.id}", "status": STATES[job.head.state]}
    return changes if reply is None else {**changes, "error": _error(reply.body)}


def _error(body: bytes) -> Response:
    """Reads a failed reply in OpenAI's form, or in the server's own: that of a job that no model answered."""
    told = msgspec.json.decode(body)
    error = told.get("error") or {"code": None, "message": told["message"]}
    return {"code": error["code"] or "server_error", "message": error["message"]}
