"""One job of one connection: the sink of its reply, which writes to the transport without a task between them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from time import monotonic
from typing import Protocol

from uvicorn.server import ServerState

from msx_frontend.errors import RequestCancelled, ServiceError
from msx_frontend.ids import new_request_id
from msx_frontend.job import Cancellable
from msx_frontend.net.http.compression import compress, compressed_headers, is_compressible
from msx_frontend.net.http.cors import with_cors
from msx_frontend.net.http.failures import CLOSE, failure_reply, reported
from msx_frontend.net.http.v1.cached_head import CachedHead
from msx_frontend.net.http.v1.direct import Direct
from msx_frontend.net.http.v1.direct_stream import DirectStream, WritesStream
from msx_frontend.net.http.v1.usual_head import UsualHead
from msx_frontend.net.http.wire import (
    BODYLESS,
    JSON_HEADERS,
    RawHeaders,
    head_bytes,
    reason_of,
    reply_headers,
    request_id_of,
)

JOINED = 1 << 16
"""Bytes of a body that is copied behind its head; a larger one is written as it is."""


class WritesReplies(WritesStream, Protocol):
    """The connection of a reply."""

    server_state: ServerState

    @property
    def direct(self) -> Direct: ...

    def usual_head(self, usual: UsualHead, request_id: str, size: int, *, json: bool) -> bytes: ...

    def answered(self, reply: DirectReply) -> None: ...

    def completed(self, reply: DirectReply) -> None: ...


class DirectReply:
    """uvicorn takes it for a cycle of its own: `response_complete`, `keep_alive`."""

    __slots__ = ("_stream", "connection", "id", "job", "keep_alive", "known", "response_complete", "started")
    disconnected = False
    message_event = asyncio.Event()
    """uvicorn sets it; nothing waits for it."""

    def __init__(self, connection: WritesReplies, known: CachedHead) -> None:
        self.connection, self.known = connection, known
        self.started = monotonic()
        self.id = new_request_id() if known.head.given_id is None else request_id_of(known.head.given_id)
        self.keep_alive = known.head.keeps_alive
        self.response_complete = False
        self.job: Cancellable | None = None
        """The job to cancel when the client leaves."""
        self._stream: DirectStream | None = None

    # -- the request --

    def leave(self) -> None:
        """The client has left."""
        if not self.response_complete:
            self.complete(RequestCancelled.status)

    # -- the whole reply --

    def answer(self, status: int, phrase: str, headers: list[tuple[str, str]], data: bytes) -> None:
        if self.response_complete or self._stream is not None:
            return
        if self.known.encoding is not None and is_compressible(status, headers, len(data)):
            self._compress(status, phrase, headers, data)
        elif status == 200 and self.keep_alive and not phrase and (not headers or headers == JSON_HEADERS):
            self._write(self.connection.usual_head(self.known.usual, self.id, len(data), json=bool(headers)), data)
            self.response_complete, self.job = True, None
            self.connection.answered(self)
        else:
            self.write_answer(status, phrase, headers, data)

    def refuse(self, error: ServiceError, *, body_read: bool = True) -> None:
        """Write the error in the form of its family."""
        if not self.response_complete:
            status, headers, body = failure_reply(self.known.family, error, self.id, body_read=body_read)
            self.keep_alive = self.keep_alive and CLOSE not in headers
            self._write(self._head(status, headers), body)
            self.complete(status)

    def _compress(self, status: int, phrase: str, own: list[tuple[str, str]], data: bytes) -> None:
        """Compress in a thread, then write the reply unless the client has left."""
        encoding = self.known.encoding or ""

        def compressed(done: asyncio.Future[bytes]) -> None:
            if self.response_complete:
                return
            try:
                packed = done.result()
            except Exception as error:
                self.refuse(reported(error, self.id))
            else:
                self.write_answer(status, phrase, own, packed, compressed_headers(encoding))

        loop = self.connection.loop
        loop.run_in_executor(None, compress, data, encoding).add_done_callback(compressed)

    def write_answer(
        self,
        status: int,
        phrase: str,
        own: list[tuple[str, str]],
        data: bytes,
        more: Sequence[tuple[bytes, bytes]] = (),
    ) -> None:
        """Write the head and the body. `more` are the server's own headers."""
        bodyless = status in BODYLESS
        framing = [*more] if bodyless else [*more, (b"content-length", b"%d" % len(data))]
        if (head := self.head(status, phrase, own, framing)) is not None:
            self._write(head, b"" if bodyless else data)
            self.complete(status)

    def head(self, status: int, phrase: str, own: list[tuple[str, str]], framing: RawHeaders) -> bytes | None:
        """The head, or None if HTTP does not allow what the handler set: then the client was told."""
        try:
            headers, reason = reply_headers(self.id, own), reason_of(phrase)
        except ServiceError as error:
            self.refuse(error)
            return None
        self.keep_alive = self.keep_alive and not (status >= 400 and self.known.family.closes_on_error)
        return self._head(status, [*headers, *framing], reason)

    def _head(self, status: int, headers: RawHeaders, reason: bytes = b"") -> bytes:
        if not any(name == b"connection" for name, _ in headers):
            headers.append((b"connection", b"keep-alive" if self.keep_alive else b"close"))
        defaults = self.connection.server_state.default_headers
        return head_bytes(status, [*defaults, *with_cors(headers, self.known.usual.cors)], reason)

    def _write(self, head: bytes, data: bytes) -> None:
        transport = self.connection.transport
        if len(data) <= JOINED:
            transport.write(head + data)
        else:
            transport.writelines((head, data))

    def complete(self, status: int) -> None:
        """The reply is over, whether its last byte was written or not."""
        self.response_complete = True
        self.connection.direct.log(self, status)
        job, stream = self.job, self._stream
        self.job = self._stream = None  # ends the reference cycles
        if job is not None:
            job.cancel()
        if stream is not None:
            stream.close()
        self.connection.completed(self)

    # -- a reply in chunks, or a failure --

    def start(self, status: int, phrase: str, headers: list[tuple[str, str]]) -> None:
        self._chunked().start(status, phrase, headers)

    def chunk(self, data: bytes) -> None:
        self._chunked().chunk(data)

    def end(self) -> None:
        self._chunked().end()

    def fail(self, error: ServiceError) -> None:
        if self._stream is not None:
            self._stream.fail(error)
        elif not self.response_complete:
            self.refuse(error)

    def flush(self) -> None:
        if self._stream is not None:
            self._stream.flush()

    def _chunked(self) -> DirectStream:
        if self._stream is None:
            self._stream = DirectStream(self)
            self._stream.job = self.job
        return self._stream
