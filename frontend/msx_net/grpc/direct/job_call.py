"""A unary call that is one job: the events of its stream submit it, and its answer is written where it arrives."""

from msx_core.held_bytes import UNCOUNTED
from msx_core.priorities import NORMAL
from msx_core.replies.sink import Cancellable
from msx_core.tracing.trace_context import TraceHeaders
from msx_net.grpc.answer import not_one, parsed
from msx_net.grpc.codes import Code
from msx_net.grpc.direct.blocks import HEAD, ok_trailers
from msx_net.grpc.direct.call import DirectCall
from msx_net.grpc.direct.framing import PREFIX, MessageReader, framed, not_compressed
from msx_net.grpc.direct.head import CallHead
from msx_net.grpc.direct.open_calls import OpenCalls
from msx_net.grpc.refused import Refused
from msx_net.grpc.served import ServedMethod
from msx_net.grpc.unary_reply import ResponseTooLarge
from msx_net.http2.stream import Stream
from msx_net.keys import ClientKey, granted_priority


class JobCall(DirectCall):
    """The sink of its job: no task, future or buffer stands between the worker's answer and the client's stream."""

    __slots__ = ("_chunks", "_job", "_key", "_method", "_reader", "_received", "_request", "_size", "priority")

    def __init__(
        self, calls: OpenCalls, stream: Stream, head: CallHead, served: ServedMethod, client: str, key: ClientKey | None
    ) -> None:
        super().__init__(calls, stream, head, served, client, key)
        method = served.method.job
        assert method is not None
        self._key, self._method = key, method
        self._request: bytes | None = None
        self._reader: MessageReader | None = None
        self._job: Cancellable | None = None
        self.priority = NORMAL
        """Priority of its job, whose sink this is."""
        self._chunks: list[bytes] = []
        self._size = self._received = 0

    # -- the request --

    def data(self, data: bytes) -> None:
        self._received += len(data)
        if self._received >= UNCOUNTED and not self.over:
            self._count(self._received)
        if self.over:
            return
        if (
            self._reader is None
            and self._request is None
            and _is_whole(data)
            and len(data) - PREFIX <= self._calls.limit
        ):
            self._request = data[PREFIX:]
        else:
            self._read(data)

    def _read(self, data: bytes) -> None:
        """Read data that came in pieces, or is not a message."""
        if self._reader is None:
            self._reader = MessageReader(self._calls.limit)
        try:
            for received in self._reader.feed(data):
                if self._request is not None:
                    raise not_one("more")
                if received.compressed:
                    raise not_compressed()
                self._request = received.data
        except Refused as refused:
            self.fail(refused)

    def ended(self) -> None:
        self._stream.consumed(self._received)
        if self.over:
            return
        try:
            self._submit()
        except Exception as error:
            self.fail(error)

    def _submit(self) -> None:
        if self._reader is not None:
            self._reader.end()
        if self._request is None:
            raise not_one("none")
        method = self.served.method
        request, self._request = parsed(method.parse, self._request), None
        key = self._key
        if key is not None and key.models is not None and (model := method.model_of(request)):
            key.check_model(model)
        if self.head.asked_priority:
            self.priority = granted_priority(self.head.asked_priority, key)
        if self._timer is not None:
            self._timer.cancel()  # from now on the job has the deadline
        job = self._method.submit(request, self.id, self.deadline, self)
        if not self.over:
            self._job = job

    @property
    def session(self) -> str:
        """Session of its job, too."""
        return self.head.session

    @property
    def trace(self) -> TraceHeaders | None:
        """The client's, of the job whose sink this is."""
        return self.head.trace

    def drained(self) -> None:
        """The answer is sent as one: nothing waits for it."""

    # -- the answer: Sink --

    def start(self, status: int, phrase: str, headers: list[tuple[str, str]]) -> None:
        """The status that a handler sets does not exist in gRPC."""

    def chunk(self, data: bytes) -> None:
        if not self.over:
            self._chunks.append(data)
            self._size += len(data)
            if self._size > self._method.limit:
                self.fail(ResponseTooLarge(self._method.limit))

    def end(self) -> None:
        self.answer(200, "", [], b"".join(self._chunks))

    def answer(self, status: int, phrase: str, headers: list[tuple[str, str]], data: bytes) -> None:
        if self.over:
            return
        method = self._method
        try:
            if len(data) > method.limit:
                raise ResponseTooLarge(method.limit)
            message = self.served.method.serialize(method.response(data))
        except Exception as error:
            self.fail(error)
            return
        self._stream.send_whole(HEAD, framed(message), ok_trailers(self.id))
        self._job = None
        self._close(Code.OK)

    def _cancel(self) -> None:
        self._request = self._reader = None
        job, self._job = self._job, None  # ends the reference cycle of the two
        if job is not None:
            job.cancel()


def _is_whole(data: bytes) -> bool:
    """This piece is one message that is not compressed."""
    return len(data) >= PREFIX and not data[0] and int.from_bytes(data[1:PREFIX], "big") == len(data) - PREFIX
