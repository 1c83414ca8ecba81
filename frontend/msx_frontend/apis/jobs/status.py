"""How a job stands, as clients are told."""

from __future__ import annotations

import msgspec

from msx_frontend.deferred.book import Kept
from msx_frontend.deferred.entry import Entry
from msx_frontend.deferred.records import Delivery, State
from msx_frontend.deferred.runner import DeferredJobs


class JobStatus(msgspec.Struct):
    """Times in seconds since the epoch."""

    id: str
    path: str
    state: State
    place: int
    """How many jobs run before it, at most."""
    created: float
    started: float | None
    ended: float | None
    expires: float | None
    """The end of its reply."""
    status: int | None
    """The status of its reply."""
    callback: Delivery | None
    """How far the call of its X-Msx-Callback is."""
    key: str | msgspec.UnsetType = msgspec.UNSET
    """The name of the key that made it, for operators alone."""


def status_of(kept: Kept, entry: Entry | None, jobs: DeferredJobs, *, of_all: bool) -> JobStatus:
    """`entry`: the job in memory, where it has not ended; `of_all`: for an operator."""
    head, place = (kept.head, 0) if entry is None else (entry.head, jobs.place(entry))
    return JobStatus(
        id=kept.id,
        path=head.path,
        state=head.state,
        place=place,
        created=kept.created,
        started=head.started,
        ended=head.ended,
        expires=kept.expires if kept.has_ended else None,
        status=head.status,
        callback=head.callback,
        key=kept.owner if of_all else msgspec.UNSET,
    )
