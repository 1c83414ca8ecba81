"""Where the time of a job went, by what its record has when it ends."""

from collections.abc import Callable
from typing import Any, NamedTuple

MOST_WRAPPED = 8
"""Sinks that may stand around the one that knows when its request came."""


BatchOf = Callable[[Any], tuple[float, int]]
"""Time at which the batch of a job began (`time.monotonic()`), and how many requests it has; 0 where its runner does
not know."""


class Phases(NamedTuple):
    """`time.monotonic()` instants, one after the other."""

    known: float
    """When the head of the request came; 0 where that is not known."""
    came: float
    """The same, or when it was queued."""
    enqueued: float
    sent: float
    """Moment at which it was sent to a worker; 0 if it never was."""
    begun: float
    """Its batch: until then it was in the worker's socket, behind the batch before."""
    answered: float
    """The worker's first byte of the reply."""
    ended: float
    batch: int
    """Requests of its batch; 0 where that is not known."""


def phases_of(job: Any, now: float) -> Phases:
    """Phases of a job, or of a request that was several jobs, which ends now."""
    known, sent = _arrival(job.sink), job.started
    batch_of: BatchOf | None = getattr(getattr(job, "group", None), "batch_of", None)
    began, size = batch_of(job) if batch_of is not None else (0.0, 0)
    begun = min(max(began, sent or now), now)
    answered = min(max(job.first_chunk, begun), now) if job.first_chunk else now
    return Phases(known, known or job.enqueued, job.enqueued, sent, begun, answered, now, size)


def _arrival(sink: object) -> float:
    """When the head of the request came: known to the innermost sink, the connection's own. 0: not known."""
    for _ in range(MOST_WRAPPED):
        if isinstance(found := getattr(sink, "started", None), float):
            return found
        sink = getattr(sink, "sink", None)
    return 0.0
