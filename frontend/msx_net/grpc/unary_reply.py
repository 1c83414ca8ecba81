"""The reply of a unary call: all chunks of its job, as one."""

import asyncio

from msx_core.priorities import NORMAL
from msx_core.service_errors import ServiceError
from msx_core.tracing.trace_context import TraceHeaders


class ResponseTooLarge(ServiceError):
    """`limit` is in bytes."""

    grpc_code = "RESOURCE_EXHAUSTED"

    def __init__(self, limit: int) -> None:
        super().__init__(
            f"The response has more than max_response_size ({limit} bytes): "
            "raise it in config.properties, or max_msg_mb_size in the start script that opened the port, or let the "
            "handler send smaller pieces to StreamPredictions."
        )


class UnaryReply:
    """The Sink of one job: await `ended`, then take `data`. A reply of more than `limit` bytes ends at once, too.

    It costs half of a ReplyBuffer: a unary call's client cannot read slowly, and gRPC does not use a reply's head.
    """

    __slots__ = ("_chunks", "_error", "_limit", "_size", "ended", "priority", "session", "trace")

    def __init__(self, limit: int) -> None:
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._limit, self._size = limit, 0
        self.priority = NORMAL
        """Priority of its job, like the trace below."""
        self.trace: TraceHeaders | None = None
        self.session = ""
        self._chunks: list[bytes] = []
        self._error: ServiceError | None = None

    def start(self, status: int, phrase: str, headers: list[tuple[str, str]]) -> None:
        """The status that a handler sets does not exist in gRPC."""

    def chunk(self, data: bytes) -> None:
        if not self.ended.done():
            self._chunks.append(data)
            self._size += len(data)
            if self._size > self._limit:
                self.fail(ResponseTooLarge(self._limit))

    def answer(self, status: int, phrase: str, headers: list[tuple[str, str]], data: bytes) -> None:
        self.chunk(data)
        self.end()

    def end(self) -> None:
        if not self.ended.done():
            self.ended.set_result(None)

    def fail(self, error: ServiceError) -> None:
        if not self.ended.done():
            self._error = error
            self.ended.set_result(None)

    def data(self) -> bytes:
        """Raises the job's ServiceError, or ResponseTooLarge."""
        if self._error is not None:
            raise self._error
        return b"".join(self._chunks)  # bytes, also of a large one, which is a bytearray
