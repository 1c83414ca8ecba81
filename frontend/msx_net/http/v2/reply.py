"""A job in HTTP/2: the stream brings its request, and takes its reply, without a task between them."""

from __future__ import annotations

from time import monotonic

from msx_core.held_bytes import UNCOUNTED, Hold
from msx_core.service_errors import ServiceError, SlowRequest
from msx_net.http.compression import WORTHWHILE
from msx_net.http.direct import Direct
from msx_net.http.direct_reply import DirectReply
from msx_net.http.direct_stream import HttpReplyHead
from msx_net.http.job_reply import begin
from msx_net.http.known_head import KnownHead
from msx_net.http.v2.blocks import UsualBlock, reply_block
from msx_net.http.v2.cut_stream import CutStream
from msx_net.http.wire import JSON_HEADERS, request_too_large
from msx_net.http2.stream import Stream


class Http2Reply(DirectReply):
    __slots__ = ("_hold", "_http2", "_parts", "_received", "_usual")

    def __init__(self, stream: Stream, direct: Direct, known: KnownHead, usual: UsualBlock) -> None:
        super().__init__(direct, known)
        self._http2, self._usual = stream, usual
        self._parts: list[bytes] = []
        """The part of the body that has arrived."""
        self._received = 0
        self._hold: Hold | None = None
        """Counts the bytes of a large body; made when the first one comes."""

    # -- what the stream says --

    def data(self, data: bytes) -> None:
        self._parts.append(data)
        self._received += len(data)
        if self._received >= UNCOUNTED or self._received > self.direct.limit:
            self._count(len(data))

    def ended(self) -> None:
        parts, self._parts = self._parts, []
        body = parts[0] if len(parts) == 1 else b"".join(parts)
        if body and self.known.packed:
            self.begin_packed(body)
        else:
            begin(self.known.template, self.id, body, self)

    def lost(self, reason: str) -> None:
        self.leave()

    def drained(self) -> None:
        self.flush()

    def too_slow(self, reason: str) -> None:
        self.refuse(SlowRequest(reason))

    def _count(self, size: int) -> None:
        """Count bytes of a large body; its client may send more of it, up to the limits."""
        if self._received > (limit := self.direct.limit):
            self.refuse(request_too_large(limit))
        else:
            self.hold(self._received)
        if not self.response_complete:
            self._http2.consumed(size)

    def hold(self, size: int) -> None:
        if self.response_complete:
            return
        if self._hold is None:
            self._hold = self.direct.held.hold()
        try:
            self._hold.resize(size)
        except ServiceError as error:
            self.fail(error)

    # -- the reply --

    def answer(self, status: int, phrase: str, headers: list[tuple[str, str]], data: bytes) -> None:
        """Most replies are usual: their header block is that of the last one, but for the id and the length."""
        usual = status == 200 and not phrase and (not headers or headers == JSON_HEADERS)
        packed = self.known.encoding is not None and len(data) >= WORTHWHILE
        if not usual or packed or self.response_complete or self._stream is not None:
            super().answer(status, phrase, headers, data)
            return
        self._http2.send_whole(self._usual.of(self.id, len(data), json=bool(headers)), data)
        self.response_complete, self.job = True, None
        self.direct.write_entry((self.known.asked, self.id, self.started, monotonic()))
        self.completed()

    def write_whole(self, head: HttpReplyHead, data: bytes) -> None:
        self._http2.send_whole(reply_block(head.status, head.headers), data)

    def write_part(self, head: HttpReplyHead | None, chunks: list[bytes], *, last: bool) -> None:
        if head is not None:
            self._http2.send_headers(reply_block(head.status, head.headers))
        self._http2.send_data(chunks[0] if len(chunks) == 1 else b"".join(chunks), end=last)

    @property
    def writable(self) -> bool:
        return not self._http2.blocked

    def cut(self) -> None:
        """Cut the reply; bytes written before are sent first."""
        self._http2.events = CutStream(self._http2)

    def completed(self) -> None:
        self._parts = []
        if self._hold is not None:
            self._hold.release()
        if self._http2.events is self:
            self._http2.events = None  # ends the reference cycle of the two
