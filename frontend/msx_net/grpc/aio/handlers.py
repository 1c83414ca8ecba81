"""Handlers of a service, as grpc wants to have them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any

import grpc
from grpc import StatusCode

from msx_core.priorities import HEADER as PRIORITY
from msx_core.replies.stream_heartbeat import CLOSED
from msx_core.request_ids import SESSION, new_request_id, valid_request_id
from msx_core.service_errors import RequestCancelled
from msx_core.tracing.trace_context import PARENT, STATE, TraceHeaders
from msx_net.grpc.answer import answer_call
from msx_net.grpc.codes import Code
from msx_net.grpc.context import Call
from msx_net.grpc.metadata import REQUEST_ID
from msx_net.grpc.outcome import Outcome, failure
from msx_net.grpc.served import ServedMethod
from msx_net.heartbeats import StreamHeartbeats

PAGE = ("origin", "sec-fetch-site", "x-forwarded-host")


def generic_handlers(
    methods: Iterable[ServedMethod], heartbeats: StreamHeartbeats
) -> list[grpc.GenericRpcHandler[Any, Any]]:
    """All methods are streams of bytes for grpc: what it said of others would not be what the other transport says."""
    by_service: dict[str, dict[str, Any]] = {}
    for served in methods:
        handler: Any = grpc.stream_stream_rpc_method_handler(_handler(served, heartbeats))
        by_service.setdefault(served.service.name, {})[served.method.name] = handler
    return [grpc.method_handlers_generic_handler(name, handlers) for name, handlers in by_service.items()]


def _handler(served: ServedMethod, heartbeats: StreamHeartbeats) -> Callable[[Any, Any], Any]:
    async def handle(_: Any, context: Any) -> None:
        call = AioCall(context, served, heartbeats)
        code = Code.CANCELLED
        try:
            outcome = await _answered(served, context, call)
            code = outcome.code
            await call.end(outcome)
        except asyncio.CancelledError:
            if call.expired:
                code = Code.DEADLINE_EXCEEDED
            raise
        finally:
            call.heartbeat.close()
            if served.access_log is not None:
                served.access_log.write(call.line(served.target), code.value)

    return handle


def _check_page(served: ServedMethod, call: AioCall) -> None:
    """Check its origin: grpc does not say under which name the server was asked. Raises ServiceError."""
    if served.guard is not None:
        served.guard.check("POST", lambda name: call.page.get(name.decode(), ""), None)


async def _answered(served: ServedMethod, context: Any, call: AioCall) -> Outcome:
    """The headers are judged before a message is read: the library holds no more of it then than its window lets in."""
    try:
        _check_page(served, call)
        call.take()
    except Exception as error:
        return failure(error, served.service, call.id)
    return await answer_call(served, await _begun(context), call)


async def _begun(context: Any) -> AsyncIterator[bytes]:
    """The messages, as soon as there is one: clients take a status that overtakes their first message for a broken
    transport.
    """
    first = await context.read()
    return _Messages(first, context)


class _Messages:
    def __init__(self, first: Any, context: Any) -> None:
        self._next, self._context = first, context

    def __aiter__(self) -> _Messages:
        return self

    async def __anext__(self) -> bytes:
        message, self._next = self._next, None
        if message is None:
            message = await self._context.read()
        if message is grpc.aio.EOF:  # type: ignore[attr-defined]
            self._next = message
            raise StopAsyncIteration
        data: bytes = message
        return data


def _seen(head: asyncio.Future[None]) -> None:
    """Ignore that a head could not be sent: its client has left, which the next message finds out."""
    if not head.cancelled():
        head.exception()


class AioCall:
    """The OpenCall of grpc's context."""

    def __init__(self, context: Any, served: ServedMethod, heartbeats: StreamHeartbeats) -> None:
        self._context = context
        self._started = time.monotonic()
        self.heartbeat = heartbeats.open(self._send_head) if served.method.server_streams else CLOSED
        """Open while a stream has not begun."""
        self._head: asyncio.Future[None] | None = None
        """Sends the initial metadata early; nothing else may be written meanwhile."""
        left: float | None = context.time_remaining()
        self.deadline = None if left is None else self._started + left
        given_id: str | None = None
        authorization: str | None = None
        self.asked_priority = self.session = ""
        self.page: dict[str, str] = {}
        """The headers by which a browser says whose page has made it call."""
        found: dict[str, str] = {}
        for key, value in context.invocation_metadata() or ():
            if key == REQUEST_ID:
                given_id = valid_request_id(str(value).encode())
            elif key == "authorization":
                authorization = str(value)
            elif key == PRIORITY:
                self.asked_priority = str(value)
            elif key == SESSION:
                self.session = str(value)
            elif key in (PARENT, STATE):
                found[key] = str(value)
            elif key in PAGE:
                self.page[key] = str(value)
        self.trace: TraceHeaders | None = (found[PARENT], found.get(STATE, "")) if PARENT in found else None
        self.id = "" if served.method.key is None else given_id or new_request_id()
        self.key_name = ""
        self.sent_key = served.admission.sent_key(served.method.key, authorization)

    def take(self) -> None:
        """Count the call. Raises InvalidKey, TooManyRequests."""
        if self.sent_key is not None:
            try:
                self.sent_key.take()
            finally:
                self.key_name = self.sent_key.name

    @property
    def expired(self) -> bool:
        return self.deadline is not None and time.monotonic() >= self.deadline

    async def send(self, message: bytes, /) -> None:
        if self._context.cancelled():
            raise RequestCancelled
        await self._begin()
        await self._context.write(message)

    def _send_head(self) -> None:
        self.heartbeat.close()
        self._head = asyncio.ensure_future(self._context.send_initial_metadata(()))
        self._head.add_done_callback(_seen)

    async def _begin(self) -> None:
        self.heartbeat.close()
        if self._head is not None:
            await asyncio.wait([self._head])

    async def end(self, outcome: Outcome) -> None:
        await self._begin()
        own = ((REQUEST_ID, self.id),) if self.id else ()
        self._context.set_trailing_metadata((*own, *outcome.metadata))
        if outcome.response is not None:
            await self._context.write(outcome.response)
        if outcome.code is not Code.OK:
            await self._context.abort(StatusCode[outcome.code.name], outcome.message)

    def line(self, target: str) -> Call:
        """Line for the access log."""
        client = self._context.peer().partition(":")[2]  # `ipv4:127.0.0.1:33002`
        return Call(client, target, self.id, self._started, key_name=self.key_name)
