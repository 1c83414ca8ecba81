"""The last slow and failed requests of a model version: where each millisecond of them went.

What ends a job compares two numbers; all else is done for the few requests that are kept.
"""

import time
from collections import deque
from itertools import count

from msgspec import Struct

from msx_core.service_errors import ServiceError
from msx_frontend.job import Job
from msx_frontend.metrics.phases import phases_of

KEPT = 20
"""Slow ones, and as many failed ones, of each version."""
LONGEST = 500
"""Characters of an error that are kept."""

FAILED = 400
_numbers = count(1)


class Trace(Struct, frozen=True, gc=False, rename="camel"):
    """Phases are in milliseconds, None where they are not known. They follow each other."""

    number: int
    id: str
    model: str
    version: str
    kind: str
    status: int
    ended: float
    """Seconds since the epoch."""
    total: float
    parse: float | None
    """Time from the head of the request to its job: its body was read, its key checked."""
    queue: float
    """Until it was sent to a worker."""
    wait: float
    """Time in the worker's socket, behind the batch that ran before it."""
    worker: float
    """Until the worker's first byte of the reply."""
    reply: float
    """Until the last one: of a stream, all that came after its first byte."""
    batch: int
    """Requests of its batch; 0 where that is not known."""
    error: str = ""


class Traces:
    """Slow and failed requests of one version. A request is slow if it took longer than `bound`, in seconds.

    `judged` sets the bound anew every few seconds; a request that was kept raises it to its own time. So a wave of slow
    requests leaves its slowest ones, and not the same one many times.
    """

    __slots__ = ("_failed", "_labels", "_slow", "bound", "last")

    def __init__(self, name: str, version: str) -> None:
        self._labels = name, version
        self.bound = 0.0
        self.last = 0
        """The number of the newest one, which is higher than those of all before it."""
        self._slow: deque[Trace] = deque(maxlen=KEPT)
        self._failed: deque[Trace] = deque(maxlen=KEPT)

    @property
    def kept(self) -> tuple[list[Trace], list[Trace]]:
        """The slow ones and the failed ones, from old to new."""
        return list(self._slow), list(self._failed)

    def judged(self, usual: float) -> None:
        """Set the bound: requests that take longer than `usual` seconds are slow from now on."""
        self.bound = usual

    def ended(self, jobs: list[Job], now: float) -> None:
        """Keep the first of jobs that ended together with one status: it has waited longest."""
        job = jobs[0]
        self.last = next(_numbers)
        trace = _trace(self.last, self._labels, job, now, job.status, reason_of(job))
        if job.status >= FAILED:
            self._failed.append(trace)
        else:
            self.bound = now - job.enqueued
            self._slow.append(trace)

    def refused(self, job: Job, status: int, error: ServiceError) -> None:
        """It was not queued."""
        self.last = next(_numbers)
        self._failed.append(_trace(self.last, self._labels, job, time.monotonic(), status, error.message))


def _trace(number: int, labels: tuple[str, str], job: Job, now: float, status: int, error: str) -> Trace:
    phases = phases_of(job, now)
    came, sent = phases.known, phases.sent or now
    return Trace(
        number=number,
        id=job.id,
        model=labels[0],
        version=labels[1],
        kind=job.kind,
        status=status,
        ended=time.time(),
        total=_millis(came or job.enqueued, now),
        parse=_millis(came, job.enqueued) if came else None,
        queue=_millis(job.enqueued, sent),
        wait=_millis(sent, phases.begun),
        worker=_millis(phases.begun, phases.answered),
        reply=_millis(phases.answered, now),
        batch=phases.batch,
        error=error[:LONGEST],
    )


def reason_of(job: Job) -> str:
    """Error message of a job that fails now."""
    error: ServiceError | None = getattr(job, "failure", None)
    return error.message if error is not None else ""


def _millis(begin: float, end: float) -> float:
    return round(max(end - begin, 0.0) * 1000, 3)
