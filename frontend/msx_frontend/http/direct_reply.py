"""One prediction on one connection: the sink of its job, which writes to the transport without a task between them."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING

from msx_frontend.errors import PayloadTooLarge, RequestCancelled, ServiceError
from msx_frontend.http.direct import Known
from msx_frontend.http.wire import (
    BODYLESS,
    RawHeaders,
    error_reply,
    head_bytes,
    reply_headers,
    request_id_of,
)
from msx_frontend.queueing.reply_buffer import HIGH_WATER, ReplyBuffer

if TYPE_CHECKING:
    from msx_frontend.http.direct_protocol import DirectProtocol

log = logging.getLogger("msx.http")

JOINED = 1 << 16
"""Bytes of a body that is copied behind its head; a larger one is written as it is."""


class DirectReply(ReplyBuffer):
    """uvicorn takes it for a cycle of its own: `response_complete`, `keep_alive`."""

    __slots__ = (
        "_connection",
        "_opening",
        "_parts",
        "_received",
        "_scheduled",
        "_streaming",
        "id",
        "keep_alive",
        "known",
        "response_complete",
        "started",
    )
    disconnected = False
    message_event = asyncio.Event()
    """Nobody waits for it; uvicorn sets it."""

    def __init__(self, connection: DirectProtocol, known: Known) -> None:
        super().__init__()
        self._connection, self.known = connection, known
        self.started = time.monotonic()
        self.id = request_id_of(known.head.given_id)
        self.keep_alive = known.head.keeps_alive
        self.response_complete = self._streaming = self._scheduled = False
        self._parts: list[bytes] = []
        self._opening = b""
        """The head of a stream that is not written yet."""
        self._received = 0

    # -- the access line --

    @property
    def client(self) -> str:
        return self._connection.client_text

    @property
    def target(self) -> str:
        return self.known.text

    @property
    def method(self) -> str:
        return self.known.head.method

    @property
    def protocol(self) -> str:
        return "HTTP/1.1"

    # -- the request --

    def more_body(self, data: bytes, limit: int) -> None:
        """`limit` is in bytes of the whole."""
        self._parts.append(data)
        self._received += len(data)
        if self._received > limit:
            self.refuse(PayloadTooLarge(f"The request is larger than max_request_size ({limit} bytes)."))

    def body_complete(self) -> None:
        parts, self._parts = self._parts, []
        if not self.response_complete:
            self.submit(parts[0] if len(parts) == 1 else b"".join(parts))

    def submit(self, body: bytes) -> None:
        """The request is complete."""
        try:
            self._connection.direct.predictions.submit(self.known.head, self.id, self.known.target, body, self)
        except ServiceError as error:
            self.refuse(error)
        except Exception as error:
            log.exception("a bug of the server", extra={"request_id": self.id})
            self.refuse(ServiceError(f"Internal error: {type(error).__name__}: {error}"))

    def leave(self) -> None:
        """The client has left."""
        if not self.response_complete:
            self._complete(RequestCancelled.status)

    # -- the answer --

    def answer(self, status: int, phrase: str, headers: list[tuple[str, str]], data: bytes) -> None:
        if self.response_complete or self._error is not None:
            return
        if headers or status != 200 or not self.keep_alive:
            self._write_answer(status, headers, data)
        else:
            self._write(self._connection.usual_head(self.id, len(data)), data)
            self._complete(200)

    def refuse(self, error: ServiceError) -> None:
        """The error body, and the end of the connection."""
        if not self.response_complete:
            headers, body = error_reply(error, self.id)
            self.keep_alive = False
            self._write(self._head_bytes(error.status, headers), body)
            self._complete(error.status)

    def _write_answer(self, status: int, own: list[tuple[str, str]], data: bytes) -> None:
        headers = self._reply_headers(status, own)
        if headers is None:
            return
        if status in BODYLESS:
            data = b""
        else:
            headers.append((b"content-length", b"%d" % len(data)))
        self._write(self._head_bytes(status, headers), data)
        self._complete(status)

    def _reply_headers(self, status: int, own: list[tuple[str, str]]) -> RawHeaders | None:
        """None where the handler's `own` are no headers, and that has been said."""
        self.keep_alive = self.keep_alive and status < 400
        try:
            return reply_headers(self.id, own)
        except ServiceError as error:
            self.refuse(error)
            return None

    def _head_bytes(self, status: int, headers: RawHeaders) -> bytes:
        if not any(name == b"connection" for name, _ in headers):
            headers.append((b"connection", b"keep-alive" if self.keep_alive else b"close"))
        defaults = self._connection.server_state.default_headers
        return head_bytes(status, [*defaults, *headers, *self._connection.direct.cors])

    def _write(self, head: bytes, data: bytes) -> None:
        transport = self._connection.transport
        if len(data) <= JOINED:
            transport.write(head + data)
        else:
            transport.writelines((head, data))

    # -- a stream, or what came in pieces --

    def _wake(self) -> None:
        """What comes in one turn of the loop is written at once, for many streams by many writes in a row."""
        if not self._scheduled:
            self._scheduled = True
            self._connection.loop.call_soon(self.flush)

    def flush(self) -> None:
        """Write what is there, unless the client reads too slowly: then it is called again."""
        self._scheduled = False
        if self.response_complete or not (self._streaming or self._begin()):
            return
        if self._chunks and self._connection.flow.write_paused:
            return
        if data := self._framed():
            self._connection.transport.write(data)
        if self._chunks:
            self._wake()
        else:
            self._end_if_over()

    def _begin(self) -> bool:
        """True when a stream has begun. An answer that is there in one piece is none."""
        head = self._head
        if self._error is not None and (head is None or not self._chunks):
            self.refuse(self._error)
        elif head is not None and self.whole:
            self._write_answer(head.status, head.headers, self._chunks[0] if self._chunks else b"")
        elif head is not None:
            return self._begin_stream(head.status, head.headers)
        return False

    def _begin_stream(self, status: int, own: list[tuple[str, str]]) -> bool:
        headers = self._reply_headers(status, own)
        if headers is None:
            return False
        headers += [(b"ts_stream_next", b"true"), (b"transfer-encoding", b"chunked")]
        self._opening = self._head_bytes(status, headers)
        self._streaming = True
        return True

    def _framed(self) -> bytes:
        """The head, chunks as HTTP/1.1 frames them, up to HIGH_WATER bytes, and the end: what there is of them."""
        framed, self._opening = [self._opening], b""
        size = 0
        while self._chunks and size < HIGH_WATER:
            data = self._chunks.popleft()
            size += len(data)
            framed.append(b"%x\r\n%b\r\n" % (len(data), data))
        self._taken(size)
        if self._ended and not self._chunks and self._error is None:
            framed.append(b"0\r\n\r\n")
        return b"".join(framed)

    def _end_if_over(self) -> None:
        if self._error is not None:
            level = logging.INFO if self._error.status == RequestCancelled.status else logging.WARNING
            log.log(level, "a stream was cut: %s", self._error.message, extra={"request_id": self.id})
            self.keep_alive = False
            self._complete(self._error.status)
        elif self._ended:
            self._complete(200 if self._head is None else self._head.status)

    def _complete(self, status: int) -> None:
        self.response_complete = True
        self._connection.direct.access_log.write(self, status)
        if self._chunks or self._stall is not None or (self.job is not None and not self.job.done):
            self.close()
        self.job = None  # ends the reference cycle of the two
        self._connection.completed(self)
