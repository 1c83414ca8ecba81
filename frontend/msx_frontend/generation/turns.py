"""Several messages of one request to one model. Some jobs run at a time; the first that fails ends all."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import msgspec

from msx_core.generation import GenerateRequest
from msx_core.service_errors import ServiceError
from msx_frontend.generation.text_request import TextRequest
from msx_frontend.job import Job
from msx_frontend.models.versions.model_version import ModelVersion

AT_ONCE = 32
"""The most texts of one request that its jobs generate at a time, and the most jobs: a list of a thousand prompts must
not fill the worker. A job of more texts runs alone."""


class TurnListener(Protocol):
    """One of the two is called, once."""

    def ended(self) -> None:
        """All have ended. What it raises is an error of the request."""

    def failed(self, error: Exception) -> None: ...


class Turns:
    """The jobs of `messages`, one for each."""

    __slots__ = (
        "_at_once",
        "_listener",
        "_open",
        "_operation",
        "_over",
        "_request",
        "_sink_of",
        "_version",
        "_waiting",
    )

    def __init__(
        self,
        request: TextRequest,
        version: ModelVersion,
        operation: str,
        messages: Sequence[msgspec.Struct],
        sink_of: Callable[[Turns, int, Any], TurnSink],
        listener: TurnListener,
    ) -> None:
        """`sink_of` makes the sink of a message's job; it is given the message and its number."""
        self._request, self._version, self._operation = request, version, operation
        self._sink_of, self._listener = sink_of, listener
        self._waiting = deque(enumerate(messages))
        self._at_once = max(AT_ONCE // texts_of(messages[0]), 1)
        self._open = 0
        self._over = False

    def begin(self) -> None:
        try:
            while self._waiting and self._open < self._at_once:
                self._next()
        except Exception as error:
            self.fail(error)

    def one_ended(self) -> None:
        if self._over:
            return
        self._open -= 1
        try:
            if self._waiting:
                self._next()
            elif not self._open:
                self._listener.ended()
                self._over = True
        except Exception as error:
            self.fail(error)

    def fail(self, error: Exception) -> None:
        """End all jobs."""
        if self._over:
            return
        self._over = True
        self._waiting.clear()
        self._request.cancel()
        self._listener.failed(error)

    def _next(self) -> None:
        number, message = self._waiting.popleft()
        sink = self._sink_of(self, number, message)
        sink.job = self._request.submit(self._version, self._operation, message, sink)
        self._open += 1


def texts_of(message: msgspec.Struct) -> int:
    """How many texts the job of a message generates; 1 for other operations."""
    if not isinstance(message, GenerateRequest):
        return 1
    return max(message.params.n, message.params.best_of or 1)


class TurnSink:
    """The sink of one job. A subclass reads the chunks."""

    __slots__ = ("_turns", "job")

    def __init__(self, turns: Turns) -> None:
        self._turns = turns
        self.job: Job | None = None
        """Seconds from the submission of the job to its end."""

    def read(self, data: bytes) -> None:
        """One chunk. What it raises ends the request."""
        raise NotImplementedError

    def complete(self) -> None:
        """All chunks have come. Raises if something is missing."""

    # -- Sink --

    def start(self, status: int, phrase: str, headers: list[tuple[str, str]]) -> None:
        pass

    def chunk(self, data: bytes) -> None:
        try:
            self.read(data)
        except Exception as error:
            self._fail(error)

    def end(self) -> None:
        try:
            self.complete()
        except Exception as error:
            self._fail(error)
        else:
            self.job = None  # ends the reference cycle of the two
            self._turns.one_ended()

    def answer(self, status: int, phrase: str, headers: list[tuple[str, str]], data: bytes) -> None:
        self.chunk(data)
        self.end()

    def fail(self, error: ServiceError) -> None:
        self._fail(error)

    def _fail(self, error: Exception) -> None:
        self.job = None
        self._turns.fail(error)
