"""Lists of jobs, a page at a time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, get_args

import msgspec

from msx_core.service_errors import BadRequest
from msx_frontend.apis.jobs.status import JobStatus, status_of
from msx_frontend.deferred.records import State, created_of
from msx_frontend.deferred.runner import DeferredJobs

MOST, USUAL = 1000, 100
"""Jobs of a page."""
LOOK, MOST_LOOKS = 250, 10
"""Jobs that are read at once to find those of a state, and how often for one page."""


class JobPage(msgspec.Struct):
    """The newest first."""

    jobs: list[JobStatus]
    next: str | None
    """`after` of the next page; null where this is the last one."""


class PageAsked(NamedTuple):
    """`after`: the id of the last job of the page before; `state`: of the jobs, "" for all."""

    limit: int
    after: str
    state: str

    @classmethod
    def of(cls, query: Mapping[str, str]) -> PageAsked:
        """Raises BadRequest."""
        limit, state = query.get("limit", str(USUAL)), query.get("state", "")
        if not (limit.isascii() and limit.isdecimal() and len(limit) < 10 and 0 < int(limit) <= MOST):
            raise BadRequest(f"limit: expected an integer from 1 to {MOST}, not {limit[:20]!r}.")
        if state and state not in get_args(State):
            raise BadRequest(f"state: expected one of {', '.join(get_args(State))}, not {state[:20]!r}.")
        if (after := query.get("after", "")) and created_of(after) is None:
            raise BadRequest(f"after: expected the id of a job, not {after[:60]!r}.")
        return cls(int(limit), after, state)


async def page_of(jobs: DeferredJobs, asked: PageAsked, owner: str | None) -> JobPage:
    """The jobs of an owner, or of all. A page of a state that few are in may have fewer than it could."""
    found: list[JobStatus] = []
    behind = asked.after
    is_open = asked.state in ("queued", "running") if asked.state else None
    most = LOOK if asked.state else asked.limit
    for _ in range(MOST_LOOKS):
        kept = await jobs.book.newest(owner, behind, most, is_open=is_open)
        for one in kept:
            status = status_of(one, jobs.find(one.id, one.owner), jobs, of_all=owner is None)
            behind = one.id
            if not asked.state or status.state == asked.state:
                found.append(status)
            if len(found) == asked.limit:
                return JobPage(found, behind)
        if len(kept) < most:
            return JobPage(found, None)
    return JobPage(found, behind)
