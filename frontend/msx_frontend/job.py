"""One request on its way: what every API translates into, and where its reply goes."""

from __future__ import annotations

import asyncio
import time
from typing import NamedTuple, Protocol

import msgspec

from msx_core.generation import CLASSIFY, EMBED, GENERATE, LOAD_ADAPTER, SLEEP, TOKENIZE, Owner
from msx_core.kserve.types import INFER as INFER  # a kind of job, like the following
from msx_core.methods import METHOD, PACKED_METHOD
from msx_core.priorities import NORMAL
from msx_core.replies.sink import Sink
from msx_core.replies.stream_credit import StreamCredit
from msx_core.service_errors import RequestCancelled, ServiceError
from msx_frontend.job_headers import KeptHeaders, session_of

PREDICT, STREAM, EXPLAIN, DESCRIBE = "predict", "stream", "explain", "describe"
ALONE = frozenset({STREAM, DESCRIBE})
"""Kinds of jobs that TorchServe never puts into one batch with others: `StreamPredictions`, and descriptions."""
TORCHSERVES = frozenset({PREDICT, STREAM, EXPLAIN, DESCRIBE})
"""TorchServe's kinds. A request does not name them to the worker: headers tell them apart. They are taken in the order
in which they came: no batch passes over one for another."""
PLAIN = TORCHSERVES | {INFER}
"""Kinds of jobs that every handler takes."""
OWN = PLAIN | {PACKED_METHOD}
"""Kinds of jobs that a handler's `handle` answers, of a stage too, and none of its methods."""
OPERATIONS = frozenset({GENERATE, TOKENIZE, EMBED, CLASSIFY, LOAD_ADAPTER, SLEEP})
"""Kinds of jobs whose one field and whose chunks are messages of `msx_core.generation`."""


def method_kind(method: str) -> str:
    """The kind of a job that asks for a method of the handler."""
    return METHOD + method


class Field(msgspec.Struct, frozen=True, order=True, gc=False):
    """One input of a request. To make a struct takes a fourth of the time that a named tuple takes.

    `content_type` is as `msx_core.request.Part` has it.
    """

    name: str
    content_type: str | None
    data: bytes


Text = str | bytes | tuple[int, ...]


class Beginning(NamedTuple):
    """Beginning of a prompt, for a worker's cache. `of`: texts with another one have nothing in common."""

    of: str
    text: Text


class JobContainer(Protocol):
    """Where a job waits: a queue."""

    def discard(self, job: Job) -> None:
        """The job was cancelled: forget it."""


class JobRunner(Protocol):
    """Where a job runs: a worker group."""

    def cancel(self, job: Job) -> None:
        """The job was cancelled: tell the worker."""


class JobListener(Protocol):
    def jobs_ended(self, jobs: list[Job]) -> None:
        """Their clients have got their replies; called once for each job."""


class Job:
    """A prediction, explanation, description or operation of one model version.

    Times are `time.monotonic()` instants. The queue owns a job until a group takes it; the group owns it until
    its end frame, its deadline, or the group's death.
    """

    __slots__ = (
        "cancelled",
        "credit",
        "deadline",
        "done",
        "enqueued",
        "failure",
        "fields",
        "first_chunk",
        "group",
        "headers",
        "id",
        "kind",
        "listener",
        "model_name",
        "number",
        "of_nodes",
        "priority",
        "queue",
        "sink",
        "started",
        "status",
        "timer",
        "traced",
        "version",
    )
    owner: Owner | None = None
    """Requests with an owner take turns by it; each other job has a turn of its own."""

    def __init__(
        self,
        id: str,
        model_name: str,
        version: str | None,
        fields: list[Field],
        headers: list[tuple[str, str]],
        sink: Sink,
        *,
        kind: str = PREDICT,
        deadline: float | None = None,
    ) -> None:
        self.id = id
        self.model_name = model_name
        self.version = version
        self.fields = fields
        self.headers = headers
        self.sink = sink
        self.kind = kind
        self.deadline = deadline
        self.priority: int = getattr(headers, "priority", NORMAL) or getattr(sink, "priority", NORMAL)
        """The class that its client asks for, and may have: headers of HTTP know it, and sinks of calls of gRPC."""
        self.enqueued = time.monotonic()
        self.started = 0.0
        self.first_chunk = 0.0
        self.number = 0
        self.status = 0
        self.queue: JobContainer | None = None
        self.group: JobRunner | None = None
        self.timer: asyncio.TimerHandle | None = None
        self.listener: JobListener | None = None
        self.credit: StreamCredit | None = None
        self.failure: ServiceError
        """While `fail` ends it; not set otherwise, which would cost each job."""
        self.cancelled = self.done = False
        self.of_nodes: bool
        """The jobs of a graph's nodes tell where its time goes; not set where it has none."""
        self.traced: object
        """State of a sampled request for `tracing`, None of others; not set where requests are not traced."""

    def finish(self, status: int) -> None:
        """The worker has sent the last chunk of the reply."""
        if not self.done:
            self._end(status)
            self.sink.end()

    def answer(self, status: int, phrase: str, headers: list[tuple[str, str]], data: bytes) -> None:
        """The worker has sent the whole reply at once."""
        if not self.done:
            self._end(status)
            self.sink.answer(status, phrase, headers, data)

    def fail(self, error: ServiceError) -> None:
        if not self.done:
            self.failure = error
            self._end(self.status_of(error))
            self.sink.fail(error)
            del self.failure  # its traceback may lead to this job

    def session(self) -> str:
        """Client's name of the requests that belong together; "" without one."""
        headers = self.headers
        named = headers.session if isinstance(headers, KeptHeaders) else session_of(headers)
        return named or getattr(self.sink, "session", "")  # calls of gRPC know their metadata

    def beginning(self) -> Beginning:
        """Beginning of its content, for the choice of a worker that has computed it."""
        return Beginning("", b"".join(field.data for field in self.fields))

    def status_of(self, error: ServiceError) -> int:
        """The status that its client gets: TorchServe's, unless the API has its own for the error."""
        return error.status

    def cancel(self, error: ServiceError | None = None) -> None:
        """Its client has left, or may not wait longer: the job leaves the queue, or the worker is told. Idempotent."""
        if not self.done:
            self.cancelled = True
            self.fail(error or RequestCancelled())
            if self.queue is not None:
                self.queue.discard(self)
            elif self.group is not None:
                self.group.cancel(self)

    def _end(self, status: int) -> None:
        self.done, self.status = True, status
        if self.timer is not None:
            self.timer.cancel()
        if self.listener is not None:
            self.listener.jobs_ended([self])


def answer_all(
    replies: list[tuple[Job, bytes]], status: int, phrase: str, headers: list[tuple[str, str]], first_chunk: float
) -> None:
    """`answer` each of these jobs, which have the same listener, or none: it is told of all of them in one call."""
    ended = []
    for job, data in replies:
        if not job.done:
            job.done, job.status, job.first_chunk = True, status, first_chunk
            if job.timer is not None:
                job.timer.cancel()
            if job.listener is not None:
                ended.append(job)
            job.sink.answer(status, phrase, headers, data)
    if ended and (listener := ended[0].listener) is not None:
        listener.jobs_ended(ended)
