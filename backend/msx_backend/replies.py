"""Replies of the handler, on their way to the server."""

import socket
import threading
from collections import deque
from collections.abc import Callable

from msx_backend.early_heads import EarlyHeads
from msx_backend.gathered import GatheredAnswers, GatheredChunks
from msx_backend.supervisor_line import replace
from msx_core.batch import Batch
from msx_core.failures import RequestFailure, shortened
from msx_core.methods import PACKED_METHOD
from msx_core.references import Key, SharedValues
from msx_core.reply_credit import UNLIMITED
from msx_core.reply_head import ReplyHead
from msx_protocol import (
    LARGE,
    MAX_BODY,
    Broken,
    CallDone,
    Chunk,
    Dropped,
    Failed,
    Joined,
    Lent,
    Loaded,
    LoadFailed,
    LoadProgress,
    Returned,
    encode_frame,
    encode_frame_parts,
)
from msx_sdk.request import InferenceRequest

MAX_TEXT = 1 << 20
"""The most characters of a handler's message."""


class ReplyWriter:
    """A `BatchSink` over the data socket. Handlers may send from any thread, so that writes take a lock.

    Replies are held until `flush()` and are then sent in one write, complete replies in as few frames as possible;
    large bodies are sent at once, without a copy.
    """

    def __init__(
        self,
        sock: socket.socket,
        max_response_size: int,
        credit: int = 0,
        max_value_size: int = 0,
        early_heads: EarlyHeads | None = None,
        *,
        outlives: bool = False,
    ) -> None:
        """`credit`: bytes of a stream that may be sent before its client has taken any (`Load.stream_credit`).
        `max_value_size`: those of a value for the next stage, where they may be more than of a response. `outlives`:
        the worker goes on when its frontend crashes, and what it sends meanwhile is dropped.
        """
        self._sock, self._early_heads, self._outlives = sock, early_heads, outlives
        self._credit = credit or UNLIMITED
        self._limit = min(max_response_size, MAX_BODY)
        self._value_limit = min(max(max_response_size, max_value_size), MAX_BODY)
        self._lock = threading.Lock()
        self._frames: list[bytes | bytearray] = []
        """Frames of the next write; gathered answers and chunks follow them."""
        self._answers, self._chunks = GatheredAnswers(), GatheredChunks()
        self._pieces: deque[tuple[InferenceRequest, bytes]] = deque()
        """Small chunks of replies that have begun, in the order of the calls: taken without the lock, as each token is
        one, and gathered with the next frame."""
        self._soon = False
        self._call_soon: Callable[[Callable[[], None]], object] | None = None
        self.progress = 0
        self.writes = 0

    def leave_together(self, call_soon: Callable[[Callable[[], None]], object] | None) -> None:
        """`call_soon` is an event loop's: what its tasks send in one turn leaves together at its end. None: what is
        flushed leaves at once."""
        self._call_soon = call_soon

    @property
    def holds(self) -> bool:
        """Whether replies are held."""
        return bool(self._pieces or self._answers.numbers or self._chunks.numbers or self._frames)

    def chunk(self, request: InferenceRequest, body: bytes | bytearray, head: ReplyHead | None, last: bool) -> None:
        size = len(body)
        if size > self._limit and (too_large := self._too_large(request, body)):
            return self.fail(request, too_large)
        if request.shared is not None and request.shared.lent:
            self._lend(request, request.shared)
        if last and head is not None and size < LARGE:
            return self._whole(request, body, head)
        if not last:
            request.sent += size
            if head is None and size < LARGE:
                return self._pieces.append((request, bytes(body)))
        if head is None:
            message = Chunk(request.number, last)
        else:
            request.credit = self._credit  # before the chunk leaves: more may be granted at any time after that
            message = Chunk(request.number, last, head.status, head.phrase, head.headers or [])
        if len(body) < LARGE:
            return self._answer(request, last, encode_frame(message, body))
        return self._answer(request, last, *encode_frame_parts(message, [body]))

    def returned(self, segments: list[Key]) -> None:
        """Nothing refers to these segments of other stages any more: told with the next write."""
        with self._lock:
            self._hold(encode_frame(Returned(segments)))

    def _lend(self, request: InferenceRequest, shared: SharedValues) -> None:
        """Told before the reply, in the same write."""
        with self._lock:
            if not request.answered:
                self._hold(encode_frame(Lent(request.number, shared.lent)))
                shared.lent = []

    def fail(self, request: InferenceRequest, failure: RequestFailure) -> None:
        texts = utf8(failure.message), utf8(failure.traceback), failure.code
        message = Failed(request.number, failure.status, *texts)
        self._answer(request, True, encode_frame(message))

    def expect_stream(self, batch: Batch, idx: int, *, events: bool) -> None:
        if self._early_heads is not None:
            self._early_heads.expect(batch, idx, events=events)

    def send_early_heads(self) -> None:
        """Called about once a second, by another thread than the handler's."""
        if self._early_heads is not None and self._early_heads.tick():
            self.flush_now()

    def drop_unanswered(self, requests: list[InferenceRequest]) -> None:
        """Cancelled requests whose result is dropped: the frontend still counts them as in flight."""
        for request in requests:
            if not request.answered:
                self._answer(request, True, encode_frame(Dropped(request.number)))

    def send(self, message: LoadProgress | Loaded | LoadFailed | Joined | CallDone | Broken) -> None:
        with self._lock:
            self.progress += 1
            self._hold(encode_frame(message))
            self._write()

    def flush(self) -> None:
        if self._call_soon is None:
            self.flush_now()
        elif not self._soon:
            self._soon = True
            self._call_soon(self.flush_now)

    def flush_now(self) -> None:
        self._soon = False
        with self._lock:
            self._write()

    def _whole(self, request: InferenceRequest, body: bytes | bytearray, head: ReplyHead) -> None:
        with self._lock:
            if request.answered:
                return
            request.answered = True
            self.progress += 1
            if not self._answers.take(request.number, head, body):
                self._frames.append(self._answers.frame())
                self._answers.take(request.number, head, body)

    def _answer(
        self, request: InferenceRequest, last: bool, frame: bytes | bytearray, large: bytes | bytearray = b""
    ) -> None:
        """Drops what any thread sends for a request that has ended."""
        with self._lock:
            if request.answered:
                return
            self._gather_pieces()  # its own are before its end
            request.answered = last
            self.progress += 1
            self._hold(frame)
            if large:
                self._write()
                self._send(large)

    def _hold(self, frame: bytes | bytearray) -> None:
        """Holds frames in the order of their making: what was gathered before this one leaves before it."""
        self._hold_gathered()
        self._frames.append(frame)

    def _hold_gathered(self) -> None:
        """A request has either an answer or chunks: their order does not matter."""
        self._gather_pieces()
        if self._answers.numbers:
            self._frames.append(self._answers.frame())
        if self._chunks.numbers:
            self._frames.append(self._chunks.frame())

    def _gather_pieces(self) -> None:
        pieces, chunks = self._pieces, self._chunks
        self.progress += len(pieces)
        while pieces:
            request, body = pieces.popleft()
            if not request.answered and not chunks.take(request.number, body):
                self._frames.append(chunks.frame())
                chunks.take(request.number, body)

    def _write(self) -> None:
        self._hold_gathered()
        if self._frames:
            self.writes += 1
            data = self._frames[0] if len(self._frames) == 1 else b"".join(self._frames)
            self._frames.clear()
            self._send(data)

    def _send(self, data: bytes | bytearray) -> None:
        try:
            self._sock.sendall(data)
        except ConnectionError:
            if not self._outlives:
                raise

    def reconnect(self, data: int, message: Loaded | None) -> None:
        """Drop what is held for a frontend that has crashed, and send `message` to the one at `data`, the descriptor of
        a new socket; None while the model is being loaded."""
        with self._lock:
            self._hold_gathered()
            self._frames.clear()
            replace(self._sock, data)
        if message is not None:
            self.send(message)

    def _too_large(self, request: InferenceRequest, body: bytes | bytearray) -> RequestFailure | None:
        if request.operation == PACKED_METHOD:
            if len(body) <= self._value_limit:
                return None
            return RequestFailure(
                500,
                f"The value of {len(body)} bytes for the next stage is larger than {self._value_limit} bytes: raise "
                "edgeMemory (MiB), or sharedMemory so that it does not travel in a frame",
            )
        return RequestFailure(
            500,
            f"The response of {len(body)} bytes is larger than max_response_size ({self._limit} bytes): "
            "raise max_response_size, or stream the response in chunks",
        )


def utf8(text: str) -> str:
    """The text as UTF-8. It may quote what a client sent: lone surrogates are replaced, and long texts are cut."""
    return shortened(text, MAX_TEXT).encode("utf-8", "backslashreplace").decode()
