"""One prediction on one connection: the sink of its job, which writes to the transport without a task between them."""

from __future__ import annotations

import asyncio
import logging
from time import monotonic
from typing import TYPE_CHECKING

from msx_frontend.errors import RequestCancelled, ServiceError
from msx_frontend.ids import new_request_id
from msx_frontend.job import Job
from msx_frontend.net.http.direct import Known
from msx_frontend.net.http.direct_stream import DirectStream
from msx_frontend.net.http.wire import (
    BODYLESS,
    JSON_HEADERS,
    RawHeaders,
    error_reply,
    head_bytes,
    reason_of,
    reply_headers,
    request_id_of,
)

if TYPE_CHECKING:
    from msx_frontend.net.http.direct_protocol import DirectProtocol

log = logging.getLogger("msx.http")

JOINED = 1 << 16
"""Bytes of a body that is copied behind its head; a larger one is written as it is."""


class DirectReply:
    """uvicorn takes it for a cycle of its own: `response_complete`, `keep_alive`."""

    __slots__ = ("_stream", "connection", "id", "job", "keep_alive", "known", "response_complete", "started")
    disconnected = False
    message_event = asyncio.Event()
    """Nobody waits for it; uvicorn sets it."""

    def __init__(self, connection: DirectProtocol, known: Known) -> None:
        self.connection, self.known = connection, known
        self.started = monotonic()
        self.id = new_request_id() if known.head.given_id is None else request_id_of(known.head.given_id)
        self.keep_alive = known.head.keeps_alive
        self.response_complete = False
        self.job: Job | None = None
        """Whom to cancel."""
        self._stream: DirectStream | None = None

    # -- the request --

    def submit(self, body: bytes) -> None:
        """The request is complete."""
        try:
            self.connection.direct.predictions.submit(self.known.order, self.id, body, self)
        except ServiceError as error:
            self.refuse(error)
        except Exception as error:
            log.exception("a bug of the server", extra={"request_id": self.id})
            self.refuse(ServiceError(f"Internal error: {type(error).__name__}: {error}"))

    def leave(self) -> None:
        """The client has left."""
        if not self.response_complete:
            self.complete(RequestCancelled.status)

    # -- the answer --

    def answer(self, status: int, phrase: str, headers: list[tuple[str, str]], data: bytes) -> None:
        if self.response_complete or self._stream is not None:
            return
        if status == 200 and self.keep_alive and not phrase and (not headers or headers == JSON_HEADERS):
            self._write(self.connection.usual_head(self.id, len(data), json=bool(headers)), data)
            self.response_complete, self.job = True, None
            self.connection.answered(self)
        else:
            self.write_answer(status, phrase, headers, data)

    def refuse(self, error: ServiceError) -> None:
        """The error body, and the end of the connection."""
        if not self.response_complete:
            headers, body = error_reply(error, self.id)
            self.keep_alive = False
            self._write(self._head(error.status, headers), body)
            self.complete(error.status)

    def write_answer(self, status: int, phrase: str, own: list[tuple[str, str]], data: bytes) -> None:
        bodyless = status in BODYLESS
        framing = [] if bodyless else [(b"content-length", b"%d" % len(data))]
        if (head := self.head(status, phrase, own, framing)) is not None:
            self._write(head, b"" if bodyless else data)
            self.complete(status)

    def head(self, status: int, phrase: str, own: list[tuple[str, str]], framing: RawHeaders) -> bytes | None:
        """None where what the handler set is no head, and that has been said."""
        self.keep_alive = self.keep_alive and status < 400
        try:
            headers, reason = reply_headers(self.id, own), reason_of(phrase)
        except ServiceError as error:
            self.refuse(error)
            return None
        return self._head(status, [*headers, *framing], reason)

    def _head(self, status: int, headers: RawHeaders, reason: bytes = b"") -> bytes:
        if not any(name == b"connection" for name, _ in headers):
            headers.append((b"connection", b"keep-alive" if self.keep_alive else b"close"))
        defaults = self.connection.server_state.default_headers
        return head_bytes(status, [*defaults, *headers, *self.connection.direct.cors], reason)

    def _write(self, head: bytes, data: bytes) -> None:
        transport = self.connection.transport
        if len(data) <= JOINED:
            transport.write(head + data)
        else:
            transport.writelines((head, data))

    def complete(self, status: int) -> None:
        """With the last byte, or without it."""
        self.response_complete = True
        self.connection.direct.log(self, status)
        job, stream = self.job, self._stream
        self.job = self._stream = None  # ends the reference cycles
        if job is not None:
            job.cancel()
        if stream is not None:
            stream.close()
        self.connection.completed(self)

    # -- an answer in pieces, or none --

    def start(self, status: int, phrase: str, headers: list[tuple[str, str]]) -> None:
        self._pieces().start(status, phrase, headers)

    def chunk(self, data: bytes) -> None:
        self._pieces().chunk(data)

    def end(self) -> None:
        self._pieces().end()

    def fail(self, error: ServiceError) -> None:
        if not self.response_complete:
            self._pieces().fail(error)

    def flush(self) -> None:
        if self._stream is not None:
            self._stream.flush()

    def _pieces(self) -> DirectStream:
        if self._stream is None:
            self._stream = DirectStream(self)
            self._stream.job = self.job
        return self._stream
