"""Holds the reply of one job between the group's reader, which never waits, and its client, which may be slow."""

from collections import deque
from collections.abc import AsyncIterator
from functools import partial
from typing import NamedTuple

from msx_core.held_bytes import Hold
from msx_core.priorities import NORMAL
from msx_core.replies.notifier import Notifier
from msx_core.replies.reader_patience import ReaderPatience
from msx_core.replies.sink import Cancellable
from msx_core.replies.stream_credit import BEHIND, StreamBuffers, StreamCredit
from msx_core.replies.stream_heartbeat import COMMENT, StreamHeartbeat
from msx_core.service_errors import RequestCancelled, ServiceError
from msx_core.tracing.trace_context import TraceHeaders

STALL_LIMIT = 30.0
"""Seconds that a reader has to take something, while its handler waits for it or its buffer is above its size."""

UNPACED = StreamBuffers()
"""The size of buffers whose jobs do not wait for their readers: those of text APIs."""


class ReplyStart(NamedTuple):
    status: int
    phrase: str
    headers: list[tuple[str, str]]


class ReaderTooSlow(RequestCancelled):
    def __init__(self, held: int, how: str) -> None:
        ServiceError.__init__(
            self, f"The request was cancelled: {held} bytes of its answer were waiting and the client {how}."
        )


class ReplyBuffer:
    """The Sink of one job, for one reader, which calls `head`, then `take` or `async for`, and always `close`.

    Bytes that came before an error are read before the error is raised. The job's handler waits for a slow reader; one
    that takes nothing for too long, or is too far behind a handler that cannot wait, loses the rest.
    """

    __slots__ = (
        "_buffers",
        "_chunks",
        "_credit",
        "_ended",
        "_enough",
        "_error",
        "_head",
        "_notifier",
        "_reading",
        "_size",
        "_stall",
        "_stall_limit",
        "heartbeat",
        "hold",
        "job",
        "priority",
        "session",
        "trace",
    )

    def __init__(
        self,
        stall_limit: float = STALL_LIMIT,
        priority: int = NORMAL,
        trace: TraceHeaders | None = None,
        session: str = "",
    ) -> None:
        self.priority, self.trace, self.session = priority, trace, session
        """Attributes of its job."""
        self.job: Cancellable | None = None
        """The job that `close` cancels; set by the caller that makes the job."""
        self.hold: Hold | None = None
        """Counts the bytes of the request; released by `close`."""
        self.heartbeat: StreamHeartbeat | None = None
        """Set for a stream of events, from `open_events` to `close`."""
        self._head: ReplyStart | None = None
        self._chunks: deque[bytes] = deque()
        self._size = 0
        self._ended = False
        self._error: ServiceError | None = None
        self._notifier = Notifier()
        self._reading = False
        """Its reader has begun. Before that no handler waits: it may have the worker that what is read first needs."""
        self._credit: StreamCredit | None = None
        self._buffers = UNPACED
        self._enough = self._buffers.size + 1
        """Bytes with which the sender waits until the reader takes something."""
        self._stall: ReaderPatience | None = None
        self._stall_limit = stall_limit

    # -- what the group's reader calls --

    def start(self, status: int, phrase: str, headers: list[tuple[str, str]]) -> None:
        self._head = ReplyStart(status=status, phrase=phrase, headers=headers)
        if self._reading:
            self._pace()
        self._wake()

    def answer(self, status: int, phrase: str, headers: list[tuple[str, str]], data: bytes) -> None:
        self.start(status, phrase, headers)
        if data:
            self.chunk(data)
        self.end()

    def chunk(self, data: bytes) -> None:
        if self._error is not None:
            return
        self._chunks.append(data)
        self._size += len(data)
        if self.heartbeat is not None:
            self.heartbeat.sent(data)
        if self._size >= self._enough:
            self._fill(len(data))
        self._wake()

    def end(self) -> None:
        if self._head is None:
            self._head = ReplyStart(status=200, phrase="", headers=[])
        self._ended = True
        if self._credit is not None:
            self._enough = self._buffers.size + 1  # no handler waits any more
            if self._stall is not None and self._size < self._enough:
                self._watch()
        self._wake()

    def fail(self, error: ServiceError) -> None:
        if self._error is None:
            self._error = error
            self._wake()

    # -- what the client's side calls --

    async def head(self) -> ReplyStart:
        """Raises the job's ServiceError if it came before any bytes."""
        if not self._reading:
            self._begin_reading()
        while self._head is None or (self._error is not None and not self._chunks):
            if self._error is not None:
                raise self._error
            await self._notifier.wait()
        return self._head

    @property
    def whole(self) -> bool:
        """The complete reply has arrived in one chunk. A reply of several chunks stays a stream."""
        return self._ended and self._error is None and len(self._chunks) <= 1

    @property
    def exhausted(self) -> bool:
        """Everything was taken, and nothing more will come."""
        return self._ended and self._error is None and not self._chunks

    async def take(self) -> tuple[bytes, bool]:
        """Wait for bytes; returns all that have arrived, joined, and whether they were the last.

        Raises the job's ServiceError after the bytes that came before it.
        """
        if not await self._available():
            return b"", True
        data = self._chunks[0] if len(self._chunks) == 1 else b"".join(self._chunks)
        self._chunks.clear()
        self._taken(self._size)
        return data, self._ended

    @property
    def over(self) -> bool:
        """Nothing more will come; some bytes may not have been taken yet."""
        return self._ended or self._error is not None

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Chunk by chunk, as they were sent; raises as `take`."""
        while await self._available():
            data = self._chunks.popleft()
            self._taken(len(data))
            yield data

    def close(self) -> None:
        """The reader has left: cancel the job unless it is done, and drop unread bytes. Idempotent."""
        job, self.job = self.job, None  # ends the reference cycle of the two
        if job is not None:
            job.cancel()
        if self.hold is not None:
            self.hold.release()
        if self.heartbeat is not None:
            self.heartbeat.close()
            self.heartbeat = None
        self._drop_rest()

    def open_events(self, heartbeat: StreamHeartbeat) -> None:
        """The reply is a stream of events. A head without an event says at once that it is."""
        self.heartbeat = heartbeat
        for data in self._chunks:
            heartbeat.sent(data)
        self.beat()

    def beat(self) -> None:
        """Send a comment of a stream of events, unless something waits for the client."""
        if self._chunks or self.over:
            return
        if self._credit is not None:
            self._credit.hold(len(COMMENT))  # the worker did not send it
        self.chunk(COMMENT)

    def _begin_reading(self) -> None:
        self._reading = True
        if self._head is not None and not self._ended:
            self._pace()

    async def _available(self) -> bool:
        if not self._reading:
            self._begin_reading()
        while not self._chunks:
            if self._error is not None:
                raise self._error
            if self._ended:
                return False
            await self._notifier.wait()
        return True

    def _wake(self) -> None:
        self._notifier.notify()

    # -- the slow reader --

    def _pace(self) -> None:
        """If the reply is a stream its handler waits for the reader from now on."""
        if self.job is not None and (credit := self.job.credit) is not None:
            credit.hold(self._size)
            self._credit, self._buffers, self._enough = credit, credit.buffers, credit.room
            credit.spent = self._size >= self._enough

    def _fill(self, last: int) -> None:
        """There is enough, with a last chunk of so many bytes."""
        if self._size - last >= self._buffers.most:
            limit = "" if self._credit is None else f", and no more than {BEHIND} times stream_buffer_size may wait"
            self._give_up(f"reads more slowly than the model answers{limit}")
            return
        if self._credit is not None:
            self._credit.spent = True
        if self._stall is None:
            self._watch()

    def _taken(self, count: int) -> None:
        self._size -= count
        if self._credit is not None and not self._ended:
            self._credit.took(count)
            self._enough = self._credit.room
            self._credit.spent = self._size >= self._enough
        if self._stall is not None:
            self._watch()

    def _watch(self) -> None:
        """The reader has its seconds from now on, if the handler waits for it."""
        if self._stall is not None:
            self._stall.cancel()
            self._stall = None
        if self._size >= self._enough:
            limit = self._stall_limit
            self._stall = ReaderPatience(limit, partial(self._give_up, f"took none of them for {limit:g} s"))

    def _give_up(self, how: str) -> None:
        self._error = ReaderTooSlow(self._size, how)
        self._drop_rest()
        if self.job is not None:
            self.job.cancel(self._error)
        self._wake()

    def _drop_rest(self) -> None:
        if self._credit is not None:
            self._credit.close()
            # No handler waits any more: a closed credit has no room, by which the reader would be watched for ever.
            self._credit, self._enough = None, self._buffers.size + 1
        self._drop()

    def _drop(self) -> None:
        """Drop the chunks that wait; more may come."""
        self._chunks.clear()
        self._taken(self._size)
