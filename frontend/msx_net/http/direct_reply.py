"""One job of one connection: the sink of its reply, which is written without a task between them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from time import monotonic
from typing import ClassVar

from msx_core.replies.sink import Cancellable
from msx_core.replies.stream_heartbeat import StreamHeartbeat
from msx_core.request_ids import new_request_id
from msx_core.service_errors import EncodingSwitchedOff, RequestCancelled, ServiceError
from msx_net.http.compressed_reply import answer_compressed
from msx_net.http.compression import decompress, is_compressible
from msx_net.http.cors import with_cors
from msx_net.http.direct import Direct
from msx_net.http.direct_stream import DirectStream, HttpReplyHead
from msx_net.http.failures import failure_reply, reported
from msx_net.http.job_reply import begin
from msx_net.http.known_head import KnownHead
from msx_net.http.wire import BODYLESS, RawHeaders, reason_of, reply_headers, request_id_of


class DirectReply:
    """Reply of a job. How its bytes leave is for each version of HTTP to say: the last methods below."""

    __slots__ = ("_stream", "direct", "id", "job", "known", "response_complete", "started")

    trace: ClassVar[None] = None
    """The job's headers have it."""

    def __init__(self, direct: Direct, known: KnownHead) -> None:
        self.direct, self.known = direct, known
        self.started = monotonic()
        self.id = new_request_id() if known.head.given_id is None else request_id_of(known.head.given_id)
        self.response_complete = False
        self.job: Cancellable | None = None
        """The job to cancel when the client leaves."""
        self._stream: DirectStream | None = None

    # -- what the connection calls --

    def leave(self) -> None:
        """The client has left."""
        if not self.response_complete:
            self.complete(RequestCancelled.status)

    def flush(self) -> None:
        """The client reads again."""
        if self._stream is not None:
            self._stream.flush()

    def refuse(self, error: ServiceError) -> None:
        """Write the error in the form of its family. Nothing of the reply may have been written."""
        if not self.response_complete:
            status, headers, body = failure_reply(self.known.family, error, self.id)
            self.write_whole(HttpReplyHead(status, b"", with_cors(headers, self.known.cors)), body)
            self.complete(status)

    # -- the sink --

    def answer(self, status: int, phrase: str, headers: list[tuple[str, str]], data: bytes) -> None:
        if self.response_complete or self._stream is not None:
            return
        if self.known.encoding is not None and is_compressible(status, headers, len(data)):
            answer_compressed(self, self.known.encoding, status, phrase, headers, data)
        else:
            self.write_answer(status, phrase, headers, data)

    def start(self, status: int, phrase: str, headers: list[tuple[str, str]]) -> None:
        self._chunked().start(status, phrase, headers)

    def chunk(self, data: bytes) -> None:
        (self._stream or self._chunked()).chunk(data)

    def end(self) -> None:
        self._chunked().end()

    def fail(self, error: ServiceError) -> None:
        if self._stream is not None:
            self._stream.fail(error)
        elif not self.response_complete:
            self.refuse(error)

    def flush_soon(self, stream: DirectStream) -> None:
        self.direct.flush_soon(stream)

    def open_heartbeat(self, beat: Callable[[], None]) -> StreamHeartbeat:
        return self.direct.heartbeats.open(beat)

    def _chunked(self) -> DirectStream:
        if self._stream is None:
            self._stream = DirectStream(self)
            self._stream.job = self.job
        return self._stream

    # -- the request --

    def begin_packed(self, body: bytes) -> None:
        """Decompress the body, then make the job."""
        if not self.known.family.decompress_requests:
            self.refuse(EncodingSwitchedOff(self.known.packed))
        else:
            self.unpack(body, self.known.packed, lambda data: begin(self.known.template, self.id, data, self))

    def unpack(self, body: bytes, encoding: str, then: Callable[[bytes], None]) -> None:
        """Decompress the body in a thread, then call `then` unless the client has left."""

        def unpacked(done: asyncio.Future[bytes]) -> None:
            if self.response_complete:
                return
            try:
                data = done.result()
                self.hold(len(data))
                if not self.response_complete:
                    then(data)
            except Exception as error:
                self.fail(reported(error, self.id))

        loop = asyncio.get_running_loop()
        loop.run_in_executor(None, decompress, body, encoding, self.direct.limit).add_done_callback(unpacked)

    # -- the whole reply --

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
            self.write_whole(head, b"" if bodyless else data)
            self.complete(status)

    def head(self, status: int, phrase: str, own: list[tuple[str, str]], framing: RawHeaders) -> HttpReplyHead | None:
        """The head, or None if HTTP does not allow what the handler set: then the client was told."""
        try:
            headers, reason = reply_headers(self.id, own), reason_of(phrase)
        except ServiceError as error:
            self.refuse(error)
            return None
        return HttpReplyHead(status, reason, with_cors([*headers, *framing], self.known.cors))

    def complete(self, status: int) -> None:
        """The reply is over, whether its last byte was written or not."""
        self.response_complete = True
        self.direct.write_entry(((*self.known.asked[:-1], status), self.id, self.started, monotonic()))
        job, stream = self.job, self._stream
        self.job = self._stream = None  # ends the reference cycles
        if job is not None:
            job.cancel()
        if stream is not None:
            stream.close()
        self.completed()

    # -- what a version of HTTP does --

    def hold(self, size: int) -> None:
        """Count the bytes of the request until it is answered; it fails where there is no room for them."""
        raise NotImplementedError

    @property
    def writable(self) -> bool:
        """The client reads as fast as is written: `flush` is called when this becomes true."""
        raise NotImplementedError

    def write_whole(self, head: HttpReplyHead, data: bytes) -> None:
        raise NotImplementedError

    def write_part(self, head: HttpReplyHead | None, chunks: list[bytes], *, last: bool) -> None:
        """Write a part of a stream. The first has the head."""
        raise NotImplementedError

    def cut(self) -> None:
        """A stream that has begun breaks off: its client must not take the part for the whole."""
        raise NotImplementedError

    def completed(self) -> None:
        """Nothing more will be written."""
        raise NotImplementedError
