"""One HTTP exchange with a language model: from the body that was read to the last byte of the reply."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import msgspec

from msx_frontend.errors import Bug, RequestCancelled, ServiceError
from msx_frontend.generation.directory import Directory
from msx_frontend.generation.errors import Failure
from msx_frontend.generation.event_stream import EventStream
from msx_frontend.generation.jobs import Jobs
from msx_frontend.generation.parameter_names import client_name, renamed
from msx_frontend.generation.replies import EVENT_STREAM, Headers, Reply, Whole, event
from msx_frontend.models.registry import Registry
from msx_frontend.net.http.call import Call
from msx_frontend.net.http.disconnect import DisconnectWatch
from msx_frontend.net.http.stream_body import EXTENSION
from msx_frontend.net.http.wire import (
    ClientGone,
    Receive,
    Send,
    StreamBroken,
    read_body,
    reply_headers,
    send_whole,
)

log = logging.getLogger("msx.http")

JSON = ("content-type", "application/json")
IGNORED = "x-msx-ignored"
"""Names what of a request has no effect."""
MOST_IGNORED = 16


@dataclass(frozen=True)
class Request:
    """What a route is given. `path` are the parts of the path that are names.

    The route fills `names`, what the client calls the parameters that errors are about, and `ignored`, the places in
    the request that have no effect, which the reply's header names.
    """

    call: Call
    body: bytes
    path: dict[str, str]
    directory: Directory
    jobs: Jobs
    names: dict[str, str]
    ignored: list[str]


@dataclass(frozen=True)
class Route:
    """`describe_failure` is its family's way to say an error."""

    answer: Callable[[Request], Awaitable[Reply]]
    describe_failure: Callable[[ServiceError], Failure]
    open: bool = False
    """Needs no token: it tells nothing but yes or no."""


class Exchange:
    def __init__(self, registry: Registry, directory: Directory, route: Route, call: Call, send: Send) -> None:
        self._directory, self._route, self._call, self._send = directory, route, call, send
        self._jobs = Jobs(registry, call, lambda error: route.describe_failure(error).status)
        self._names: dict[str, str] = {}
        self._ignored: list[str] = []
        self._body_read = False

    async def answer(self, receive: Receive, limit: int, path: dict[str, str]) -> int:
        """Returns the status for the access log. Raises StreamBroken for a stream that cannot be finished."""
        try:
            body = await read_body(receive, self._call.content_length, limit)
        except ServiceError as error:
            return await self.fail(error)
        except ClientGone:
            return RequestCancelled.status
        self._body_read = True
        watch = DisconnectWatch(self._jobs.cancel, receive)
        try:
            request = Request(self._call, body, path, self._directory, self._jobs, self._names, self._ignored)
            return await self._answer(request)
        finally:
            watch.stop()
            self._jobs.close()

    async def fail(self, error: ServiceError) -> int:
        """A client that has left is told nothing."""
        if isinstance(error, RequestCancelled):
            return error.status
        failure = self._route.describe_failure(renamed(error, self._names))
        headers = self._headers([JSON, *failure.headers])
        if not self._body_read:
            headers.append((b"connection", b"close"))
        await send_whole(self._send, failure.status, headers, msgspec.json.encode(failure.body))
        return failure.status

    async def _answer(self, request: Request) -> int:
        try:
            reply = await self._route.answer(request)
            if isinstance(reply, Whole):
                await self._whole(reply)
                return 200
            stream = EventStream(reply, self._call.scope["extensions"][EXTENSION])
            await stream.first()
        except ServiceError as error:
            return await self.fail(error)
        except Exception as error:  # a bug must look like no client's mistake, and have its family's shape
            log.exception("a bug of the server", extra={"request_id": self._call.id})
            return await self.fail(Bug(error))
        await self._stream(stream, reply.headers)
        return 200

    async def _whole(self, reply: Whole) -> None:
        body = b"" if reply.value is None else msgspec.json.encode(reply.value)
        await send_whole(self._send, 200, self._headers([JSON, *self._said_ignored(), *reply.headers]), body)

    async def _stream(self, stream: EventStream, own: Headers) -> None:
        own = [("content-type", EVENT_STREAM), ("x-accel-buffering", "no"), *self._said_ignored(), *own]
        await self._send({"type": "http.response.start", "status": 200, "headers": self._headers(own)})
        try:
            await stream.rest()
        except ServiceError as error:
            self._break_off(stream, error)
        except Exception as error:  # the same: never a clean end
            log.exception("a bug of the server", extra={"request_id": self._call.id})
            self._break_off(stream, Bug(error))
        await self._send({"type": "http.response.body", "body": b""})

    def _break_off(self, stream: EventStream, error: ServiceError) -> None:
        if not isinstance(error, RequestCancelled):
            stream.write(event(self._route.describe_failure(renamed(error, self._names)).body))
        raise StreamBroken(error)

    def _said_ignored(self) -> Headers:
        """A header with as many of the places as fit, in characters that a header may have."""
        places = [client_name(place, self._names) for place in self._ignored[:MOST_IGNORED]]
        text = ", ".join(place for place in places if place.isascii() and place.isprintable() and len(place) < 200)
        return [(IGNORED, text)] if text else []

    def _headers(self, own: Headers) -> list[tuple[bytes, bytes]]:
        return reply_headers(self._call.id, own)
