"""A call that a coroutine answers, in a task of its own."""

import asyncio

from msx_core.replies.notifier import Notifier
from msx_core.replies.stream_heartbeat import CLOSED
from msx_core.service_errors import RequestCancelled
from msx_core.tracing.trace_context import TraceHeaders
from msx_net.grpc.admission import SentKey
from msx_net.grpc.answer import answer_call
from msx_net.grpc.codes import Code
from msx_net.grpc.direct.blocks import HEAD
from msx_net.grpc.direct.call import DirectCall
from msx_net.grpc.direct.framing import framed
from msx_net.grpc.direct.head import CallHead
from msx_net.grpc.direct.open_calls import OpenCalls
from msx_net.grpc.direct.request_messages import RequestMessages
from msx_net.grpc.outcome import CANCELLED
from msx_net.grpc.served import ServedMethod
from msx_net.http2.stream import Stream
from msx_net.keys import ClientKey


class TaskCall(DirectCall):
    """When the client leaves, or the deadline passes, the task is cancelled at once.

    The initial metadata of a stream that is silent for long leave before its first message.
    """

    __slots__ = ("_drained", "_heartbeat", "_messages", "_task", "_untaken")

    def __init__(
        self, calls: OpenCalls, stream: Stream, head: CallHead, served: ServedMethod, client: str, key: ClientKey | None
    ) -> None:
        super().__init__(calls, stream, head, served, client, key)
        self._messages = RequestMessages(head.encoding, calls.limit, self._consumed)
        self._untaken = 0
        """Bytes of messages that the method has not taken. In a stream of them its service refuses each by itself: the
        call ends only where twice as much is held as may be."""
        self._drained = Notifier()
        self._task: asyncio.Task[None] | None = None
        self._heartbeat = CLOSED

    # -- what the stream says --

    def data(self, data: bytes) -> None:
        if not self.over:
            self._untaken += len(data)
            self._count(self._untaken, 2 if self.served.method.client_streams else 1)
        if not self.over:
            self._messages.feed(data)
            self._begin()

    def _consumed(self, size: int) -> None:
        """A message was taken: its bytes are now counted by the job that is made of it."""
        self._stream.consumed(size)
        self._untaken -= size
        if not self.over:
            self._count(self._untaken)

    def ended(self) -> None:
        self._messages.end()
        self._begin()

    def _begin(self) -> None:
        """Not earlier, for the reason that RefusedCall gives."""
        if self._task is None and not self.over:
            self._task = self._calls.start(self._run())
            if self.served.method.server_streams:
                self._heartbeat = self._calls.heartbeats.open(self._send_head)

    def drained(self) -> None:
        self._drained.notify()

    # -- the method --

    async def _run(self) -> None:
        try:
            self.conclude(await answer_call(self.served, self._messages, self))
        except asyncio.CancelledError:
            self.conclude(CANCELLED)
            raise

    def _send_head(self) -> None:
        self._begun = True
        self._heartbeat.close()
        self._stream.send_headers(HEAD)

    def _close(self, code: Code) -> None:
        self._heartbeat.close()
        super()._close(code)

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    # -- OpenCall --

    @property
    def sent_key(self) -> SentKey | None:
        return self.head.sent_key

    @property
    def asked_priority(self) -> str:
        return self.head.asked_priority

    @property
    def session(self) -> str:
        return self.head.session

    @property
    def trace(self) -> TraceHeaders | None:
        return self.head.trace

    async def send(self, message: bytes, /) -> None:
        if self.over:
            raise RequestCancelled
        if not self._begun:
            self._send_head()
        self._stream.send_data(framed(message))
        while self._stream.blocked:
            await self._drained.wait()
