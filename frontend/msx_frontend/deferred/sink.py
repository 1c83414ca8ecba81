"""The sink of a job's reply, which is kept until it ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from time import monotonic
from typing import NamedTuple

from msx_core.held_bytes import Hold
from msx_core.replies.sink import Cancellable
from msx_core.replies.stream_heartbeat import EventTail, is_event_stream
from msx_core.service_errors import ServiceError
from msx_frontend.deferred.records import LateReply
from msx_net.http.compression import decompress
from msx_net.http.failures import failure_event, reported
from msx_net.http.job_reply import ReplyTooLarge
from msx_net.http.known_head import KnownHead

Headers = list[tuple[str, str]]


class SinkLimits(NamedTuple):
    """Bytes of a request whose body was unpacked (max_request_size), and of a stream that is kept
    (max_response_size)."""

    request: int
    stream: int


class LateSink:
    """`ended` gets the reply, and the error that it tells, once; `grew` is called when a stream has grown."""

    def __init__(
        self,
        id: str,
        known: KnownHead,
        hold: Hold,
        limits: SinkLimits,
        ended: Callable[[LateReply, ServiceError | None], None],
        grew: Callable[[], None],
    ) -> None:
        self.id, self.known, self._limits = id, known, limits
        self.job: Cancellable | None = None
        self.started = monotonic()
        self._hold, self._ended, self._grew = hold, ended, grew
        self._head: tuple[int, Headers] | None = None
        self._tail, self._over = EventTail(), False
        self.data = bytearray()
        """The stream, so far."""

    @property
    def has_begun(self) -> bool:
        """Whether a stream, of events or of something else, has begun."""
        return self._head is not None

    @property
    def is_events(self) -> bool:
        """Whether a stream of server-sent events has begun."""
        return self._head is not None and is_event_stream(self._head[1])

    def hold(self, size: int) -> None:
        self._hold.resize(size)

    def unpack(self, body: bytes, encoding: str, then: Callable[[bytes], None]) -> None:
        def unpacked(done: asyncio.Future[bytes]) -> None:
            try:
                if not self._over:
                    data = done.result()
                    self.hold(len(data))
                    then(data)
            except Exception as error:
                self.fail(reported(error, self.id))

        loop = asyncio.get_running_loop()
        loop.run_in_executor(None, partial(decompress, body, encoding, self._limits.request)).add_done_callback(
            unpacked
        )

    # -- Sink --

    def start(self, status: int, phrase: str, headers: Headers) -> None:
        self._head = status, headers
        self._grew()

    def chunk(self, data: bytes) -> None:
        if self._over:
            return
        self._head = self._head or (200, [])
        self.data += data
        self._tail.sent(data)
        if len(self.data) > self._limits.stream:
            self.fail(ReplyTooLarge(self._limits.stream))
        else:
            self._grew()

    def end(self) -> None:
        status, headers = self._head or (200, [])
        self._end(LateReply(status, headers, bytes(self.data)), None)

    def answer(self, status: int, phrase: str, headers: Headers, data: bytes) -> None:
        self._end(LateReply(status, headers, bytes(data)), None)

    def fail(self, error: ServiceError) -> None:
        if self._head is not None and self.is_events:
            self.data += failure_event(self.known.family, error, self._tail)
            self._end(LateReply(*self._head, bytes(self.data)), error)
            return
        failure = self.known.family.failure(error)
        self._end(LateReply(failure.status, [*failure.headers], failure.body), error)

    def _end(self, reply: LateReply, error: ServiceError | None) -> None:
        if self._over:
            return
        self._over, job, self.job = True, self.job, None
        self._hold.release()
        if error is not None and job is not None:
            job.cancel()
        self._ended(reply, error)
