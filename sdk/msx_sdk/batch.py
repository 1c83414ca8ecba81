"""A batch on its way through a handler: which requests are still open, and where their replies go."""

from __future__ import annotations

import threading
from contextvars import ContextVar
from typing import Any, Protocol

from msx_sdk.errors import PREDICTION_FAILED, Failure, PredictionError
from msx_sdk.request import InferenceRequest
from msx_sdk.results import NOTHING, Last, ReplyHead

current_request_ids: ContextVar[str] = ContextVar("current_request_ids", default="")
"""Ids of the requests being worked on, for log lines."""


class ReplySink(Protocol):
    """Where replies go. Safe to call from any thread."""

    def chunk(self, request: InferenceRequest, body: bytes, head: ReplyHead | None, last: bool) -> None: ...

    def fail(self, request: InferenceRequest, failure: Failure) -> None: ...


class InvalidResult(PredictionError):
    """The handler returned something that does not answer its batch."""

    def __init__(self, message: str) -> None:
        super().__init__(PREDICTION_FAILED, message)


class Batch:
    """The requests of one handler call. Replies are numbered as the requests are; without a sink they are dropped.

    Thread-safe; what comes for a request that has ended is dropped.
    """

    def __init__(self, requests: list[InferenceRequest], sink: ReplySink | None) -> None:
        self.requests = requests
        self.heads = [ReplyHead() for _ in requests]
        self._sink = sink
        self._lock = threading.RLock()  # a handler may send from several threads: the head leaves once, and first
        self._open = [True] * len(requests)
        self._started = [False] * len(requests)

    @property
    def anything_sent(self) -> bool:
        return any(self._started) or not all(self._open)

    @property
    def deserted(self) -> bool:
        """Nobody waits for an answer any more."""
        return all(request.cancelled or not open for request, open in zip(self.requests, self._open, strict=True))

    def open_indices(self) -> list[int]:
        return [idx for idx, open in enumerate(self._open) if open]

    def send(self, values: Any) -> None:
        """One list of intermediate results, an entry a request; None where there is none this time."""
        for idx, value in enumerate(self._checked(values)):
            if value is not None:
                self._send_one(idx, value)

    def finish(self, values: Any) -> None:
        """The list that ends every request still open."""
        for idx, value in enumerate(self._checked(values)):
            self._end(idx, value.value if isinstance(value, Last) else value)

    def close(self) -> None:
        """A stream ended without a last value."""
        for idx in self.open_indices():
            self._end(idx, NOTHING)

    def fail(self, error: BaseException) -> None:
        failure = Failure.of(error)
        for idx in self.open_indices():
            self._fail(idx, failure)

    def _checked(self, values: Any) -> list[Any]:
        if not isinstance(values, (list, tuple)):
            raise InvalidResult(
                f"Invalid model predict output: a handler returns, yields or sends a list with one entry a request, "
                f"not {type(values).__name__}"
            )
        if len(values) != len(self.requests):
            raise InvalidResult(
                f"number of batch response mismatched: {len(self.requests)} requests, {len(values)} responses"
            )
        return list(values)

    def _send_one(self, idx: int, value: Any) -> None:
        if isinstance(value, (Last, BaseException)):
            self._end(idx, value.value if isinstance(value, Last) else value)
        else:
            self._chunk(idx, value, last=False)

    def _end(self, idx: int, value: Any) -> None:
        if isinstance(value, BaseException):
            self._fail(idx, Failure.of(value))
        else:
            self._chunk(idx, value, last=True)

    def _chunk(self, idx: int, value: Any, last: bool) -> None:
        if self._unwanted(idx):
            self._open[idx] &= not last
            return None
        if self._sink is None:
            self._open[idx] = not last
            return None
        try:
            body = self._encoded(idx, value)
        except Exception as error:
            return self._fail(idx, Failure.of(error))
        with self._lock:
            if not self._open[idx]:
                return None
            head = None if self._started[idx] else self.heads[idx]
            self._started[idx], self._open[idx] = True, not last
            return self._sink.chunk(self.requests[idx], body, head, last)

    def _encoded(self, idx: int, value: Any) -> bytes:
        """What ends a reply that has begun may be empty, also where each piece of it is a message of its own."""
        if value is NOTHING or (self._started[idx] and value in (None, "", b"")):
            return b""
        return self.requests[idx].encode(value, self.heads[idx].status)

    def _fail(self, idx: int, failure: Failure) -> None:
        with self._lock:
            unwanted, self._open[idx] = self._unwanted(idx), False
            if not unwanted and self._sink is not None:
                self._sink.fail(self.requests[idx], failure)

    def _unwanted(self, idx: int) -> bool:
        return self.requests[idx].cancelled or not self._open[idx]
