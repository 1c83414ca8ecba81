"""Responses in the background: jobs, which clients know by the ids of their responses."""

from __future__ import annotations

from typing import Any

import msgspec

from msx_frontend.deferred.book import Kept, WantedJob
from msx_frontend.deferred.records import CALLBACK_HEADER, Deferred, LateReply, kept_headers
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
            self._jobs.check_callback(callback, owner)
        asked = Deferred(PATH.encode(), kept_headers(headers, unpacked=True), request.body)
        parts = {OUTLINE: msgspec.json.encode(outline)}
        accepted = await self._jobs.accept(asked, WantedJob(PATH, owner, callback=callback, parts=parts))
        return _response(outline, accepted.job, None)

    async def find(self, id: str, owner: str) -> Response | None:
        """None where no job is known by this id."""
        job = id.removeprefix(PREFIX)
        entry = self._jobs.find(job, owner)
        kept = await self._jobs.book.find(job, owner)
        found = await self._jobs.book.part(job, owner, OUTLINE)
        if kept is None or not found:
            return None
        if entry is not None:
            kept = kept._replace(head=entry.head)
        return _response(msgspec.json.decode(found), kept, await self._jobs.book.reply(job, owner))

    async def cancel(self, id: str, owner: str) -> Response | None:
        """The response, whose job is cancelled unless it has ended; None where no job is known by this id."""
        if (entry := self._jobs.find(id.removeprefix(PREFIX), owner)) is not None:
            await self._jobs.cancel(entry)
        return await self.find(id, owner)

    async def delete(self, id: str, owner: str) -> bool:
        """False where no job is known by this id."""
        known = await self.cancel(id, owner) is not None
        return known and await self._jobs.delete(id.removeprefix(PREFIX), owner)


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


def _response(outline: Response, job: Kept, reply: LateReply | None) -> Response:
    if reply is not None and reply.status == 200:
        answered: Response = msgspec.json.decode(reply.body)
        return answered
    response = {**outline, "id": f"{PREFIX}{job.id}", "status": STATES[job.head.state]}
    if reply is not None:
        response["error"] = _error(reply.body)
    return response


def _error(body: bytes) -> Response:
    """Reads a failed reply in OpenAI's form, or in the server's own: that of a job that no model answered."""
    told = msgspec.json.decode(body)
    error = told.get("error") or {"code": None, "message": told["message"]}
    return {"code": error["code"] or "server_error", "message": error["message"]}
