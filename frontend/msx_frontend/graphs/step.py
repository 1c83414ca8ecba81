"""One attempt of one node for one request: the sink of its job."""

from __future__ import annotations

import logging
import time
from typing import Protocol

from msx_core.service_errors import DeadlineExceeded, ServiceError
from msx_frontend.graphs.edges import Edge, take
from msx_frontend.graphs.graph import Graph, Headers, Node
from msx_frontend.job import Field, Job

log = logging.getLogger("msx.workflows")


class Steps(Protocol):
    """The execution of a graph, as its steps see it."""

    graph: Graph
    job: Job
    held: list[Edge]

    def answered(self, step: Step, status: int, phrase: str, headers: Headers, data: bytes) -> None: ...

    def streams(self, step: Step, status: int, phrase: str, headers: Headers) -> None: ...

    def stream_ended(self, step: Step, status: int) -> None: ...

    def failed(self, step: Step, error: ServiceError) -> None: ...


class Step:
    """Passes the node's whole answer to its execution. A leaf may pass its stream on to the client."""

    __slots__ = ("_due", "_entered", "_pieces", "attempt", "execution", "fields", "head", "job", "node")

    def __init__(self, execution: Steps, node: Node, fields: list[Field], attempt: int) -> None:
        self.execution, self.node, self.fields, self.attempt = execution, node, fields, attempt
        self.job: Job | None = None
        self.head: tuple[int, str, list[tuple[str, str]]] | None = None
        self._pieces: bytearray | None = None
        self._entered = False
        self._due = 0.0
        """The instant of the node's own time limit, if that is its job's."""

    # -- what the dispatcher asks --

    @property
    def priority(self) -> int:
        """Priority of the request."""
        return self.execution.job.priority

    def enter(self) -> bool:
        if not self._entered and (edges := self.node.enters):
            if not take(edges):
                return False
            self.execution.held += edges
        self._entered = True
        return True

    # -- what the group's reader calls --

    def answer(self, status: int, phrase: str, headers: list[tuple[str, str]], data: bytes) -> None:
        if not self._too_large(len(data)):
            self.execution.answered(self, status, phrase, headers, data)

    def start(self, status: int, phrase: str, headers: list[tuple[str, str]]) -> None:
        self.head = status, phrase, headers
        execution, node = self.execution, self.node
        if not execution.graph.form.shares:
            self._pieces = bytearray()
        elif node.after:
            self._refuse("it streams its reply, and only the last stage of a route may: return the whole value")
        else:
            execution.streams(self, *self.head)

    def chunk(self, data: bytes) -> None:
        if self._pieces is None:
            self.execution.job.sink.chunk(data)
        elif not self._too_large(len(self._pieces) + len(data)):
            self._pieces += data

    def end(self) -> None:
        status, phrase, headers = self.head or (200, "", [])
        if self._pieces is None and self.head is not None:
            self.execution.stream_ended(self, status)
        else:
            self.execution.answered(self, status, phrase, headers, bytes(self._pieces or b""))

    def fail(self, error: ServiceError) -> None:
        timed_out = self._due and self.job is not None and self.job.deadline == self._due
        if timed_out and isinstance(error, DeadlineExceeded):
            error = DeadlineExceeded(f"it has not answered within its timeout-ms ({self.node.attempts.limit}).")
        self.execution.failed(self, error)

    # -- helpers --

    def _too_large(self, size: int) -> bool:
        limit = self.execution.graph.form.limit
        if limit and size > limit:
            self._refuse(f"its answer is larger than max_response_size ({limit} bytes).")
            return True
        return False

    def _refuse(self, why: str) -> None:
        """The worker may go on; it is told to stop."""
        error = ServiceError(why)
        if self.job is not None and not self.job.done:
            self.job.cancel(error)
        else:
            self.fail(error)

    def warn(self, why: str) -> None:
        most = self.node.attempts.most
        id = self.job.id if self.job is not None else self.node.name
        log.warning("%s: attempt %d of %d failed: %s", id, self.attempt + 1, most, why)

    def deadline(self) -> float | None:
        """A `time.monotonic()` instant: its own limit or that of the request, whichever is earlier."""
        limit, whole = self.node.attempts.limit, self.execution.job.deadline
        if not limit:
            return whole
        own = time.monotonic() + limit / 1000
        if whole is not None and whole < own:
            return whole
        self._due = own
        return own
