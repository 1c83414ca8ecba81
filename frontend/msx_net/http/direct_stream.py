"""A direct reply that comes in chunks: written as fast as the client reads."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import NamedTuple, Protocol

from msx_core.replies.reply_buffer import ReplyBuffer
from msx_core.replies.stream_heartbeat import StreamHeartbeat, is_event_stream
from msx_core.service_errors import RequestCancelled, ServiceError
from msx_net.http.failures import failure_event
from msx_net.http.known_head import KnownHead
from msx_net.http.wire import BODYLESS, RawHeaders, stream_framing

log = logging.getLogger("msx.http")

TOLD = 1 << 12
"""Bytes that a client has taken, after which it is noted."""
WRITTEN = 1 << 18
"""Bytes of a stream after which the connection is asked whether it takes more."""


class HttpReplyHead(NamedTuple):
    """`reason` is empty for the usual phrase."""

    status: int
    reason: bytes
    headers: RawHeaders


class StreamedReply(Protocol):
    """The reply that a stream writes."""

    @property
    def known(self) -> KnownHead: ...

    @property
    def id(self) -> str: ...

    @property
    def response_complete(self) -> bool: ...

    @property
    def writable(self) -> bool: ...

    def flush_soon(self, stream: DirectStream) -> None: ...

    def open_heartbeat(self, beat: Callable[[], None]) -> StreamHeartbeat: ...

    def refuse(self, error: ServiceError) -> None: ...

    def write_answer(self, status: int, phrase: str, own: list[tuple[str, str]], data: bytes) -> None: ...

    def head(
        self, status: int, phrase: str, own: list[tuple[str, str]], framing: RawHeaders
    ) -> HttpReplyHead | None: ...

    def write_part(self, head: HttpReplyHead | None, chunks: list[bytes], *, last: bool) -> None: ...

    def cut(self) -> None: ...

    def complete(self, status: int) -> None: ...


class DirectStream(ReplyBuffer):
    """Streams, and also replies that came in chunks and were complete before any of them was written."""

    __slots__ = ("_opening", "_reply", "_scheduled", "_streaming", "_unsent")

    def __init__(self, reply: StreamedReply) -> None:
        super().__init__()
        self._reply = reply
        self._reading = True
        self._scheduled = self._streaming = False
        self._opening: HttpReplyHead | None = None
        """The head of a stream that is not written yet."""
        self._unsent = 0
        """Bytes of chunks that the connection has, and that its client has not taken as far as is known."""

    def chunk(self, data: bytes) -> None:
        """Write the chunk at once if the client keeps up, as most do: no queue, no second look at the stream."""
        size = self._size + len(data)
        waits = self._scheduled or self._chunks or self._opening is not None or self._error is not None
        if waits or not self._streaming or size >= self._enough or not self._reply.writable:
            super().chunk(data)
            return
        if self._unsent >= TOLD:
            self._taken(self._unsent)
            self._unsent, size = 0, self._size + len(data)
        self._size = size
        self._unsent += len(data)
        if (heartbeat := self.heartbeat) is not None:
            heartbeat.before, heartbeat.last = heartbeat.last, data  # `sent`, without a call for each token
        self._reply.write_part(None, [data], last=False)

    def _wake(self) -> None:
        """Chunks that have to wait in one turn of the loop leave in one write for each stream."""
        if not self._scheduled:
            self._scheduled = True
            self._reply.flush_soon(self)

    def flush(self) -> None:
        """Write what is there, unless the client reads too slowly: then it is called again."""
        self._scheduled = False
        if self._reply.response_complete or not (self._streaming or self._begin()):
            return
        if self._reply.writable:
            self._taken(self._unsent)
            self._unsent = 0
        elif self._chunks or not self.over:
            return
        self._write()
        if self.over and not self._chunks:
            self._end()
        elif self._chunks or self._size >= self._enough:
            self._wake()

    def _begin(self) -> bool:
        """Whether a stream has begun. A reply in one chunk is not a stream."""
        head = self._head
        if head is not None and head.status in BODYLESS:
            self._drop()
        if self._error is not None and (head is None or not self._chunks):
            self._reply.refuse(self._error)
        elif head is not None and self.whole:
            self._reply.write_answer(*head, self._chunks[0] if self._chunks else b"")
        elif head is not None and head.status not in BODYLESS:
            framing = stream_framing(head.headers, self._reply.known.family.stream_headers)
            self._opening = self._reply.head(*head, framing)
            self._streaming = self._opening is not None
            if self._streaming and is_event_stream(head.headers):
                self.open_events(self._reply.open_heartbeat(self.beat))
        return self._streaming

    def _drop(self) -> None:
        super()._drop()
        self._unsent = 0

    def _write(self) -> None:
        """Write as much as possible now: the head, up to WRITTEN bytes of chunks, and the end."""
        opening, self._opening = self._opening, None
        chunks = self._next_chunks()
        last = self._ended and not self._chunks and self._error is None
        if opening is not None or chunks or last:
            self._reply.write_part(opening, chunks, last=last)

    def _next_chunks(self) -> list[bytes]:
        waiting = self._chunks
        if len(waiting) == 1:  # as of each token of a text
            data = waiting.popleft()
            self._unsent += len(data)
            return [data]
        chunks, size = [], 0
        while waiting and size < WRITTEN:
            chunks.append(data := waiting.popleft())
            size += len(data)
        self._unsent += size
        return chunks

    def _end(self) -> None:
        if self._error is not None:
            level = logging.INFO if self._error.status == RequestCancelled.status else logging.WARNING
            log.log(level, "a stream was cut: %s", self._error.message, extra={"request_id": self._reply.id})
            if self.heartbeat is not None and (
                told := failure_event(self._reply.known.family, self._error, self.heartbeat)
            ):
                self._reply.write_part(None, [told], last=False)  # a stream of events says why it breaks off
            self._reply.cut()
            self._reply.complete(self._error.status)
        else:
            self._reply.complete(200 if self._head is None else self._head.status)
