"""The outermost layer of a listener: a request from its head to the last byte of its reply, for all families alike."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator

from msx_core.held_bytes import HOLD, HeldBytes, Hold
from msx_core.replies.stream_heartbeat import EventTail, is_event_stream
from msx_core.service_errors import EncodedUpload, EncodingSwitchedOff, RequestCancelled
from msx_net.heartbeats import OFF, StreamHeartbeats
from msx_net.http.admission import ChecksKeys, admitted, check_model
from msx_net.http.asgi_request import AsgiRequest
from msx_net.http.compression import accepted, compress, compressed_headers, decompress, is_compressible
from msx_net.http.cors import Cors, is_preflight
from msx_net.http.direct import Direct
from msx_net.http.failures import failure_event, failure_reply, no_route, reported
from msx_net.http.family import Answer, AppRoute, Defers, Family, JobRoute, Reply, UploadRoute
from msx_net.http.request import Request
from msx_net.http.response_head import ResponseHead
from msx_net.http.router import Match, Router
from msx_net.http.wire import (
    ClientGone,
    LogsReplies,
    Message,
    RawHeaders,
    Receive,
    Scope,
    Send,
    StreamBroken,
    read_body,
    reply_headers,
    send_whole,
    stream_framing,
)
from msx_net.page_guard import PageGuard

log = logging.getLogger("msx.http")


class Exchange:
    """Pure ASGI. `tokens` is None when authorization is off; `limit` is in bytes of a body (max_request_size).

    `guard` judges requests for management where no keys are asked for.
    """

    def __init__(
        self,
        router: Router,
        access_log: LogsReplies,
        *,
        limit: int,
        tokens: ChecksKeys | None = None,
        cors: Cors | None = None,
        held: HeldBytes | None = None,
        guard: PageGuard | None = None,
        heartbeats: StreamHeartbeats = OFF,
        defers: Defers | None = None,
    ) -> None:
        self._router, self._access_log = router, access_log
        self._limit, self._tokens = limit, tokens
        self._cors = cors or Cors()
        self._held = held or HeldBytes()
        self._guard, self._heartbeats, self._defers = guard, heartbeats, defers

    def direct(self) -> Direct:
        """Rules for connections that answer jobs by themselves: the same."""
        return Direct(
            self._router,
            self._access_log,
            self._tokens,
            self._cors,
            self._held,
            self._limit,
            guard=self._guard,
            heartbeats=self._heartbeats,
            defers=self._defers,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        call = AsgiRequest(scope)
        status, body = 500, _Body(receive, self._held)
        scope[HOLD] = body.hold
        try:
            status = await self._serve(call, body, ResponseHead(send, self._cors.headers(self._cors.allowed(call))))
        except StreamBroken as broken:
            status = broken.status
            level = logging.INFO if status == RequestCancelled.status else logging.WARNING
            log.log(level, "a stream was cut: %s", broken, extra={"request_id": call.id})
            raise
        finally:
            body.hold.release()
            self._access_log.write(call, status)

    async def _serve(self, call: AsgiRequest, receive: Receive, send: ResponseHead) -> int:
        try:
            match = self._router.find(call.method, call.path, call.raw_path)
        except Exception as error:
            told = reported(error, call.id)
            return await _fail(send, *failure_reply(self._router.default, told, call.id))
        send.errors_close = match.family.closes_on_error
        request = Request(call, match.names)
        try:
            return await self._answer(match, request, receive, send)
        finally:
            request.close()

    async def _answer(self, match: Match, request: Request, receive: Receive, send: ResponseHead) -> int:
        call, family = request.call, match.family
        try:
            if is_preflight(call, match):
                return await _preflight(match, call, send)
            if self._guard is not None and match.is_management:
                self._guard.check(call.method, call.header, call.scope["server"])
            if self._tokens is not None:
                call.key = admitted(self._tokens, match, call.authorization)
                check_model(match, call.key)
                call.use(call.key)
            answer = _answer_of(match, call)
            if not match.kinds:
                call.scope[HOLD].count_in(self._held.public)
            if isinstance(answer, AppRoute):
                return await answer.run(call, receive, send)
            if isinstance(answer, UploadRoute):
                if encoding := call.content_encoding:
                    raise EncodedUpload(encoding)
                uploaded = answer.answer(request, _pieces(receive, call.scope[HOLD]))
                return await _send(family, request, await uploaded, send)
            request.body = await self._read(family, call, receive)
            return await _send(family, request, await answer(request), send)
        except ClientGone:
            return RequestCancelled.status
        except StreamBroken:
            raise
        except Exception as error:
            told = reported(error, call.id)
            if not request.left:
                return await _fail(send, *failure_reply(match.form(call), told, call.id))
            return told.status

    async def _read(self, family: Family, call: AsgiRequest, receive: Receive) -> bytes:
        """The body. Raises PayloadTooLarge, UnknownEncoding, BadRequest, Overloaded, ClientGone."""
        body = await read_body(receive, call.content_length, self._limit)
        encoding = call.content_encoding
        if not encoding or not body or family.takes_as_sent:
            return body
        if not family.decompress_requests:
            raise EncodingSwitchedOff(encoding)
        unpacked = await asyncio.to_thread(decompress, body, encoding, self._limit)
        call.scope[HOLD].resize(len(unpacked))
        return unpacked


def _answer_of(match: Match, call: AsgiRequest) -> Answer | AppRoute | UploadRoute:
    """Raises ResourceNotFound, MethodNotAllowed."""
    if match.route is None:
        raise no_route(call.method, call.path, match.allowed)
    assert not isinstance(match.route.answer, JobRoute), "the connection answers jobs"
    return match.route.answer


async def _pieces(receive: Receive, hold: Hold) -> AsyncIterator[bytes]:
    """The body as it comes; a piece is held until the next one is asked for. Raises ClientGone."""
    more = True
    while more:
        message = await receive()
        if message["type"] != "http.request":
            raise ClientGone
        yield message.get("body", b"")
        hold.resize(0)
        more = message.get("more_body", False)


async def _preflight(match: Match, call: AsgiRequest, send: Send) -> int:
    allowed = ", ".join(match.allowed)
    own = [("allow", allowed)] if allowed else []
    await send_whole(send, 204, reply_headers(call.id, own), b"")
    return 204


async def _send(family: Family, request: Request, reply: Reply, send: Send) -> int:
    """Raises HandlerFailed, before anything is sent, for what a handler set and HTTP does not allow."""
    call, body = request.call, reply.body
    headers = reply_headers(call.id, list(reply.headers))
    if isinstance(body, bytes | bytearray | memoryview):
        encoding = accepted(call.header(b"accept-encoding")) if family.compress_replies else None
        if encoding and is_compressible(reply.status, reply.headers, len(body)):
            body = await asyncio.to_thread(compress, body, encoding)
            headers += compressed_headers(encoding)
        await send_whole(send, reply.status, headers, body)
    else:
        headers += stream_framing(reply.headers, family.stream_headers)
        await send({"type": "http.response.start", "status": reply.status, "headers": headers})
        await _stream(body, call, send, family if is_event_stream(reply.headers) else None)
    return reply.status


async def _stream(chunks: AsyncIterator[bytes], call: AsgiRequest, send: Send, family: Family | None) -> None:
    """`family` is that of a stream of events, in which an error is told."""
    tail = EventTail()
    try:
        async for data in chunks:
            tail.sent(data)
            await send({"type": "http.response.body", "body": data, "more_body": True})
    except Exception as error:
        told = reported(error, call.id)
        if family is not None and (event := failure_event(family, told, tail)):
            await send({"type": "http.response.body", "body": event, "more_body": True})
        raise StreamBroken(told) from None
    await send({"type": "http.response.body", "body": b""})


async def _fail(send: Send, status: int, headers: RawHeaders, body: bytes) -> int:
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
    return status


class _Body:
    """Counts what is read, until the request is answered. Raises ServiceError where that is too much."""

    def __init__(self, receive: Receive, held: HeldBytes) -> None:
        self._receive, self.hold = receive, held.hold()

    async def __call__(self) -> Message:
        message = await self._receive()
        if data := message.get("body"):
            self.hold.resize(self.hold.size + len(data))
        return message
