"""A batch on its way through a handler: which requests are still open, and where their replies go."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from contextvars import ContextVar
from typing import Any, Protocol

from msx_core.errors import PredictionError
from msx_core.failures import RequestFailure
from msx_core.methods import METHOD
from msx_core.reply_credit import wait_for_any
from msx_core.reply_head import EVENTS, PLAIN, ReplyHead
from msx_core.request import InferenceRequest
from msx_core.results import NOTHING, Last, is_json
from msx_core.statuses import HEAD_REFUSED, PREDICTION_FAILED

current_request_ids: ContextVar[str] = ContextVar("current_request_ids", default="")
"""Ids of the requests being worked on, for log lines."""


AS_IS = frozenset((bytes, bytearray))
"""Types of values that are sent as they are."""


class BatchSink(Protocol):
    """Where replies go. Safe to call from any thread."""

    def chunk(self, request: InferenceRequest, body: bytes | bytearray, head: ReplyHead | None, last: bool) -> None:
        """`body` may change after the call; a sink that keeps it copies it."""

    def fail(self, request: InferenceRequest, failure: RequestFailure) -> None: ...

    def expect_stream(self, batch: Batch, idx: int, *, events: bool) -> None:
        """The reply to this request of the batch will be a stream, of server-sent `events` or any other: the sink may
        call `batch.begin_stream` when it takes long to begin."""

    def flush(self) -> None:
        """Send what was kept to be sent together with later replies."""


class InvalidResult(PredictionError):
    """The handler returned something that does not answer its batch."""

    def __init__(self, message: str) -> None:
        super().__init__(PREDICTION_FAILED, message)


class ReplyState:
    """How far the reply of one request has come."""

    head: ReplyHead | None = None
    started = False
    open = True


class Batch:
    """The requests of one call of the handler. Replies have the order of the requests; without a sink they are dropped.

    `states` are the states of replies that earlier calls have begun. Thread-safe; a value for a request that has ended
    is dropped.
    """

    def __init__(
        self,
        requests: list[InferenceRequest],
        sink: BatchSink | None,
        states: list[ReplyState] | None = None,
        *,
        blocks: bool = False,
        lock: threading.Lock | None = None,
    ) -> None:
        """`lock` is that of all batches that share states."""
        self.requests = requests
        self.blocks = blocks
        """Who sends by `context.send` waits, on its thread, while the clients are slow."""
        self._states = states or [ReplyState() for _ in requests]
        self._sink = sink
        self._lock = lock or threading.Lock()
        """A handler may send from several threads: the head leaves once, and first."""

    def head(self, idx: int) -> ReplyHead:
        state = self._states[idx]
        if state.head is None:
            state.head = ReplyHead()
        return state.head

    @property
    def ids(self) -> str:
        requests = self.requests
        return requests[0].id if len(requests) == 1 else ",".join([request.id for request in requests])

    @property
    def anything_sent(self) -> bool:
        return any(state.started or not state.open for state in self._states)

    @property
    def deserted(self) -> bool:
        """All requests of the batch were cancelled."""
        return all(map(self._unwanted, range(len(self.requests))))

    def open_indices(self) -> list[int]:
        return [idx for idx, state in enumerate(self._states) if state.open]

    def awaits(self, idx: int) -> bool:
        """The reply has not begun, and its client is there."""
        state = self._states[idx]
        return state.open and not (state.started or self.requests[idx].cancelled)

    def expect_events(self, idx: int) -> None:
        """The handler has marked the reply as a stream of server-sent events."""
        if self._sink is not None and self.awaits(idx):
            self._sink.expect_stream(self, idx, events=True)

    def expect_streams(self, indices: Iterable[int] | None = None) -> None:
        """The handler will give the replies of these requests, or of all, piece by piece."""
        if self._sink is not None:
            for idx in range(len(self.requests)) if indices is None else indices:
                if _is_plain(request := self.requests[idx]):
                    self._sink.expect_stream(self, idx, events=_content_type(request, None) == EVENTS)

    def begin_stream(self, idx: int) -> None:
        """Give the sink the head alone of a reply that has not begun. From any thread."""
        state, request = self._states[idx], self.requests[idx]
        with self._lock:
            head = state.head or PLAIN
            if self._sink is None or head.refused or not self.awaits(idx):
                return
            state.started = True
            if kind := _content_type(request, head):
                head = head.with_type(kind)
            self._sink.chunk(request, b"", head, last=False)

    def wait(self) -> None:
        """Block while the clients of all open requests are slow. One that is faster holds the others' replies up no
        longer than its own."""
        waiting = []
        for request, state in zip(self.requests, self._states):  # noqa: B905 (as many, and compared in each step)
            if state.open and not request.cancelled:
                if request.sent < request.credit:
                    return
                waiting.append(request)
        if waiting:
            wait_for_any(waiting)

    async def drain(self) -> None:
        """Wait while the client is slow; an async handler's batch has one request."""
        await self.requests[0].granted()

    def send(self, values: Any) -> None:
        """Takes a list of intermediate results, one for each request; None sends nothing for that request."""
        for idx, value in enumerate(self.checked(values)):
            if value is not None:
                self._send_one(idx, value)
        if self._sink is not None:
            self._sink.flush()

    def offer(self, value: bytes) -> bool:
        """Takes the next chunk of an async handler's one request, to be sent with the next `flush` of the sink; False
        while its client is slow."""
        request, state = self.requests[0], self._states[0]
        if request.sent >= request.credit:
            return False
        if state.started and state.open and request.encoder is None and self._sink is not None:
            if not request.cancelled:
                self._sink.chunk(request, value, None, last=False)
        else:
            self._chunk(0, value, last=False)
        return True

    def finish(self, values: Any) -> None:
        """Takes the list of last values, which ends every request that is still open."""
        for idx, value in enumerate(self.checked(values)):
            if type(value) in AS_IS:
                self._chunk(idx, value, last=True)
            else:
                self._end(idx, value.value if isinstance(value, Last) else value)

    def close(self) -> None:
        """Ends every open request after a stream without a last value."""
        for idx in self.open_indices():
            self._end(idx, NOTHING)

    def fail(self, error: BaseException) -> None:
        failure = RequestFailure.of(error)
        for idx in self.open_indices():
            self._fail(idx, failure)

    def checked(self, values: Any) -> list[Any] | tuple[Any, ...]:
        if not isinstance(values, (list, tuple)):
            raise InvalidResult(
                f"Invalid model predict output: a handler returns, yields or sends a list with one entry a request, "
                f"not {type(values).__name__}"
            )
        if len(values) != len(self.requests):
            raise InvalidResult(
                f"number of batch response mismatched: {len(self.requests)} requests, {len(values)} responses"
            )
        return values

    def _send_one(self, idx: int, value: Any) -> None:
        if isinstance(value, (Last, BaseException)):
            self._end(idx, value.value if isinstance(value, Last) else value)
        else:
            self._chunk(idx, value, last=False)

    def _end(self, idx: int, value: Any) -> None:
        if isinstance(value, BaseException):
            self._fail(idx, RequestFailure.of(value))
        else:
            self._chunk(idx, value, last=True)

    def _chunk(self, idx: int, value: Any, last: bool) -> None:
        state, request = self._states[idx], self.requests[idx]
        if request.cancelled or not state.open or self._sink is None:
            state.open &= not last
            return None
        try:
            as_it_is = type(value) in AS_IS and request.encoder is None
            body = value if as_it_is else _encoded(request, state, value)
        except Exception as error:
            return self._fail(idx, RequestFailure.of(error))
        if state.head is not None and state.head.refused and not state.started:
            return self._fail(idx, RequestFailure(HEAD_REFUSED, state.head.refused))
        json = last and body is not value and type(value) is not str and _is_plain(request) and is_json(value)
        kind = "" if as_it_is or request.encoder is None else _content_type(request, state.head)
        with self._lock:
            if not state.open:
                return None
            head = None if state.started else state.head or PLAIN
            if head is not None and (json or kind):
                head = head.with_type(kind) if kind else head.with_json()
            state.started, state.open = True, not last
            return self._sink.chunk(request, body, head, last)

    def _fail(self, idx: int, failure: RequestFailure) -> None:
        with self._lock:
            unwanted, self._states[idx].open = self._unwanted(idx), False
            if not unwanted and self._sink is not None:
                self._sink.fail(self.requests[idx], failure)

    def _unwanted(self, idx: int) -> bool:
        return self.requests[idx].cancelled or not self._states[idx].open


def _is_plain(request: InferenceRequest) -> bool:
    """Its reply has the form of a prediction's."""
    return not request.operation or request.operation.startswith(METHOD)


def _content_type(request: InferenceRequest, head: ReplyHead | None) -> str:
    """The type of a reply that is not encoded as every prediction's is; "" where nothing says so, and of errors."""
    if request.encoder is None or (head is not None and head.status >= 400):
        return ""
    return getattr(request.encoder, "content_type", "")


def _encoded(request: InferenceRequest, state: ReplyState, value: Any) -> bytes | bytearray:
    """The last value of a reply that has begun may be empty, even where each value is a message of its own."""
    if value is NOTHING or (state.started and value in (None, "", b"")):
        return b""
    return request.encode(value, (state.head or PLAIN).status)
