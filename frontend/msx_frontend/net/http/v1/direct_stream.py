"""A direct reply that comes in chunks: written as those of HTTP/1.1, as fast as the client reads."""

from __future__ import annotations

import asyncio
import logging
from typing import Protocol

from uvicorn.protocols.http.flow_control import FlowControl

from msx_frontend.errors import RequestCancelled, ServiceError
from msx_frontend.net.http.v1.cached_head import CachedHead
from msx_frontend.net.http.wire import RawHeaders
from msx_frontend.queueing.reply_buffer import ReplyBuffer

log = logging.getLogger("msx.http")

CHUNKED = (b"transfer-encoding", b"chunked")

WRITTEN = 1 << 18
"""Bytes of a stream after which the transport is asked whether it takes more."""


class WritesStream(Protocol):
    """The connection of a stream."""

    loop: asyncio.AbstractEventLoop
    transport: asyncio.Transport
    flow: FlowControl


class StreamedReply(Protocol):
    """The reply that a stream writes."""

    keep_alive: bool

    @property
    def connection(self) -> WritesStream: ...

    @property
    def known(self) -> CachedHead: ...

    @property
    def id(self) -> str: ...

    @property
    def response_complete(self) -> bool: ...

    def refuse(self, error: ServiceError) -> None: ...

    def write_answer(self, status: int, phrase: str, own: list[tuple[str, str]], data: bytes) -> None: ...

    def head(self, status: int, phrase: str, own: list[tuple[str, str]], framing: RawHeaders) -> bytes | None: ...

    def complete(self, status: int) -> None: ...


class DirectStream(ReplyBuffer):
    """Streams, and also replies that came in chunks and were complete before any of them was written."""

    __slots__ = ("_opening", "_reply", "_scheduled", "_streaming")

    def __init__(self, reply: StreamedReply) -> None:
        super().__init__()
        self._reply = reply
        self._scheduled = self._streaming = False
        self._opening = b""
        """The head of a stream that is not written yet."""

    def _wake(self) -> None:
        """Chunks that arrive in one turn of the loop leave in one write for each stream."""
        if not self._scheduled:
            self._scheduled = True
            self._reply.connection.loop.call_soon(self.flush)

    def flush(self) -> None:
        """Write what is there, unless the client reads too slowly: then it is called again."""
        self._scheduled = False
        if self._reply.response_complete or not (self._streaming or self._begin()):
            return
        connection = self._reply.connection
        if self._chunks and connection.flow.write_paused:
            return
        if data := self._framed():
            connection.transport.write(data)
        if self._chunks:
            self._wake()
        else:
            self._end_if_over()

    def _begin(self) -> bool:
        """Whether a stream has begun. A reply in one chunk is not a stream."""
        head = self._head
        if self._error is not None and (head is None or not self._chunks):
            self._reply.refuse(self._error)
        elif head is not None and self.whole:
            self._reply.write_answer(*head, self._chunks[0] if self._chunks else b"")
        elif head is not None:
            framing = [*self._reply.known.family.stream_headers, CHUNKED]
            if (opening := self._reply.head(*head, framing)) is not None:
                self._opening, self._streaming = opening, True
        return self._streaming

    def _framed(self) -> bytes:
        """What can be written now: the head, up to WRITTEN bytes of chunks, and the end."""
        framed, self._opening = [self._opening], b""
        size = 0
        while self._chunks and size < WRITTEN:
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
            log.log(level, "a stream was cut: %s", self._error.message, extra={"request_id": self._reply.id})
            self._reply.keep_alive = False
            self._reply.complete(self._error.status)
        elif self._ended:
            self._reply.complete(200 if self._head is None else self._head.status)
