"""A request whose instances are jobs of their own: batched with others', split over workers, answered together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from msx_frontend.errors import RequestCancelled, ServiceError
from msx_frontend.job import Field, Job
from msx_frontend.queueing.enqueued import EnqueuedRequests
from msx_frontend.stream_credit import StreamCredit


class InstanceReply(NamedTuple):
    """The worker's whole reply to one instance. `status` may be 400 or more: the handler's own failure."""

    status: int
    phrase: str
    headers: list[tuple[str, str]]
    body: bytes


InstanceAnswer = InstanceReply | ServiceError


class InstancesSink(Protocol):
    def answered(self, answers: Sequence[InstanceAnswer]) -> None:
        """Called once, when the last instance is answered: one answer an instance, in the order of the request. A
        request that is cancelled, or has passed its deadline, has an error for each instance that was not answered."""


class InstanceRequest:
    """All instances are jobs of the same model version and kind. `deadline` is a `time.monotonic()` instant.
    `enqueued` counts the request until its last instance is answered.

    Raises ValueError without instances.
    """

    def __init__(
        self,
        id: str,
        model_name: str,
        version: str | None,
        instances: Sequence[list[Field]],
        headers: list[tuple[str, str]],
        sink: InstancesSink,
        *,
        kind: str,
        deadline: float | None = None,
        enqueued: EnqueuedRequests | None = None,
    ) -> None:
        if not instances:
            raise ValueError("a request needs an instance")
        self.model_name, self.version, self.deadline = model_name, version, deadline
        self.sink, self._enqueued = sink, enqueued
        self._answers: list[InstanceAnswer | None] = [None] * len(instances)
        self._open = len(instances)
        self.jobs = [
            Job(_id(id, at), model_name, version, fields, headers, _Place(self, at), kind=kind, deadline=deadline)
            for at, fields in enumerate(instances)
        ]

    @property
    def done(self) -> bool:
        return self._open == 0

    @property
    def credit(self) -> StreamCredit | None:
        return None

    def enter(self) -> None:
        """It is accepted. Raises Overloaded."""
        if self._enqueued is not None:
            self._enqueued.enter()

    def leave(self) -> None:
        """It was refused after all, or is answered."""
        if self._enqueued is not None:
            self._enqueued.leave()

    def cancel(self, error: ServiceError | None = None) -> None:
        """Its client has left, or may not wait longer. Idempotent."""
        for job in self.jobs:
            job.cancel(error or RequestCancelled())

    def put(self, at: int, answer: InstanceAnswer) -> None:
        """The answer to the instance at this place."""
        if self._answers[at] is None:
            self._answers[at] = answer
            self._open -= 1
            if not self._open:
                self.leave()
                self.sink.answered([one for one in self._answers if one is not None])


class _Place:
    """The sink of one instance."""

    __slots__ = ("_at", "_body", "_head", "_request")

    def __init__(self, request: InstanceRequest, at: int) -> None:
        self._request, self._at = request, at
        self._head: tuple[int, str, list[tuple[str, str]]] = (200, "", [])
        self._body = bytearray()

    def start(self, status: int, phrase: str, headers: list[tuple[str, str]]) -> None:
        self._head = status, phrase, headers

    def chunk(self, data: bytes) -> None:
        self._body += data

    def end(self) -> None:
        self.answer(*self._head, bytes(self._body))

    def answer(self, status: int, phrase: str, headers: list[tuple[str, str]], data: bytes) -> None:
        self._request.put(self._at, InstanceReply(status, phrase, headers, data))

    def fail(self, error: ServiceError) -> None:
        self._request.put(self._at, error)


def _id(request: str, at: int) -> str:
    return f"{request}-{at}" if at else request
