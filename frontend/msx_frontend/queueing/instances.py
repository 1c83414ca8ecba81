"""A request whose instances are jobs of their own: batched with others', split over workers, answered together."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

from msx_core.priorities import NORMAL
from msx_core.replies.stream_credit import StreamCredit
from msx_core.service_errors import RequestCancelled, ServiceError
from msx_frontend.job import Field, Job
from msx_frontend.queueing.enqueued import EnqueuedRequests


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


class RequestListener(Protocol):
    def instance_ended(self, started: float) -> None:
        """An instance is answered that a worker got at this `time.monotonic()` instant."""

    def request_ended(self, request: InstanceRequest) -> None:
        """Its last instance is answered; called once, before the sink is told."""


class RequestPlace(Protocol):
    """Who has accepted the request."""

    def instance_answered(self, request: InstanceRequest) -> None:
        """One that a worker was given."""

    def leave(self, request: InstanceRequest) -> None:
        """Forget those of its instances that wait: the request was cancelled, or has ended."""


class InstanceRequest:
    """All instances are jobs of the same model version and kind. `deadline` is a `time.monotonic()` instant.
    `enqueued` counts the request until its last instance is answered.

    A job is made when a worker takes its instance, so that accepting and cancelling thousands costs little.
    `started`, `first_chunk`, `status` are as a job has them: the first instance's start, the first
    error's status. Raises ValueError without instances.
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
        self.id, self.model_name, self.version, self.kind = id, model_name, version, kind
        self.deadline, self.headers, self.sink = deadline, headers, sink
        self.priority: int = getattr(headers, "priority", NORMAL) or getattr(sink, "priority", NORMAL)
        self._enqueued, self._counted = enqueued, False
        self.enqueued = time.monotonic()
        self.started = self.first_chunk = 0.0
        self.status = 200
        self.size = self.waiting = self._open = len(instances)
        """How many instances there are, wait for a worker, and are not answered."""
        self.place: RequestPlace | None = None
        self.listener: RequestListener | None = None
        self.timer: asyncio.TimerHandle | None = None
        self._instances = instances
        self._next = 0
        self._returned: deque[Job] = deque()
        self._taken: dict[int, Job] = {}
        """Jobs that are not answered, by place."""
        self._answers: list[InstanceAnswer | None] = [None] * len(instances)

    @property
    def done(self) -> bool:
        return self._open == 0

    @property
    def running(self) -> Iterable[Job]:
        """Jobs that were taken and are not answered."""
        return self._taken.values()

    @property
    def credit(self) -> StreamCredit | None:
        return None

    def enter(self) -> None:
        """It is accepted. Raises Overloaded."""
        if self._enqueued is not None:
            self._enqueued.enter()
            self._counted = True

    def leave(self) -> None:
        """It was refused after all, or is answered. Idempotent."""
        if self._enqueued is not None and self._counted:
            self._enqueued.leave()
            self._counted = False

    # -- the queue --

    def take(self) -> Job:
        """The next instance, for a worker."""
        self.waiting -= 1
        if self._returned:
            return self._returned.popleft()
        at = self._next
        self._next += 1
        sink, fields = InstanceSink(self, at), self._instances[at]
        id = f"{self.id}-{at}" if at else self.id
        job = Job(id, self.model_name, self.version, fields, self.headers, sink, kind=self.kind, deadline=self.deadline)
        job.enqueued, job.priority = self.enqueued, self.priority
        self._taken[at] = job
        return job

    def put_back(self, job: Job) -> None:
        """Its worker ended before it began: it is the next one again."""
        self._returned.appendleft(job)
        self.waiting += 1

    def fail_waiting(self, error: ServiceError) -> None:
        """Each instance that waits fails. The queue has forgotten them."""
        returned, self._returned = self._returned, deque()
        rest = range(self._next, self.size)
        self._next, self.waiting = self.size, 0
        for job in returned:
            job.fail(error)
        if rest:
            self._answers[rest.start :] = [error] * len(rest)
            self._failed(error)
            self._close(len(rest))

    def cancel(self, error: ServiceError | None = None) -> None:
        """Its client has left, or may not wait longer. Idempotent."""
        if self.done:
            return
        error = error or RequestCancelled()
        if self.place is not None:
            self.place.leave(self)
        self._returned.clear()  # they are in `_taken`, too
        for job in list(self._taken.values()):
            job.cancel(error)
        self.fail_waiting(error)

    # -- answers --

    def put(self, at: int, answer: InstanceAnswer) -> None:
        """The answer to the instance at this place, which was taken."""
        job = self._taken.pop(at, None)
        if job is None:
            return
        self._answers[at] = answer
        self.started = self.started or job.started
        if isinstance(answer, ServiceError) or answer.status >= 400:
            self._failed(answer)
        if self.place is not None:
            self.place.instance_answered(self)
        if self.listener is not None and job.started:
            self.listener.instance_ended(job.started)
        self._close(1)

    def _failed(self, answer: InstanceAnswer) -> None:
        if self.status < 400:
            self.status = answer.status

    def _close(self, count: int) -> None:
        self._open -= count
        if self._open:
            return
        if self.timer is not None:
            self.timer.cancel()
        self.first_chunk = time.monotonic() if self.started else 0.0
        self.leave()
        if self.place is not None:
            self.place.leave(self)
        if self.listener is not None:
            self.listener.request_ended(self)
        self.sink.answered([one for one in self._answers if one is not None])


NO_HEAD: tuple[int, str, list[tuple[str, str]]] = (200, "", [])
NO_BODY = bytearray()


class InstanceSink:
    """The sink of one instance."""

    __slots__ = ("_at", "_body", "_head", "request")

    def __init__(self, request: InstanceRequest, at: int) -> None:
        self.request, self._at = request, at
        self._head, self._body = NO_HEAD, NO_BODY

    def start(self, status: int, phrase: str, headers: list[tuple[str, str]]) -> None:
        self._head, self._body = (status, phrase, headers), bytearray()

    def chunk(self, data: bytes) -> None:
        self._body += data

    def end(self) -> None:
        self.answer(*self._head, bytes(self._body))

    def answer(self, status: int, phrase: str, headers: list[tuple[str, str]], data: bytes) -> None:
        self.request.put(self._at, InstanceReply(status, phrase, headers, data))

    def fail(self, error: ServiceError) -> None:
        self.request.put(self._at, error)


def request_of(job: Job) -> InstanceRequest | None:
    """The request of which the job is an instance; None for a request of its own."""
    return job.sink.request if isinstance(job.sink, InstanceSink) else None
