"""Gives jobs the types that `bodies:` and `replies:` of their model or route declare, whatever their clients state."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from msx_core.declared import BODY_TYPES, REPLY_TYPES
from msx_core.methods import METHOD
from msx_frontend.body_fields import form_fields
from msx_frontend.job import EXPLAIN, PREDICT, STREAM, Field, Job, accepting
from msx_net.http.event_reply import FORM, EventReply

if TYPE_CHECKING:
    from msx_core.declared import BodyKind, ReplyKind

_NAMES = ("body", "data")
"""Fields that hold a whole request: a body has the first name, and gRPC's clients use both."""


class DeclaredJobs(NamedTuple):
    bodies: BodyKind | None
    replies: ReplyKind | None

    @property
    def takes_whole(self) -> bool:
        """A body that its client states to be a form is left in one piece."""
        return self.bodies not in (None, "form")

    def enter(self, job: Job) -> None:
        """Give the job the types that the service declares. Raises BadRequest for a form that cannot be read."""
        kind = job.kind
        if kind not in (PREDICT, STREAM, EXPLAIN) and not kind.startswith(METHOD):
            return
        if self.bodies is not None:
            job.fields = _declared(job.fields, self.bodies)
        if self.replies is not None:
            job.headers = accepting(job.headers, REPLY_TYPES[self.replies])
            if self.replies == "events" and (failure := getattr(job.sink, FORM, None)) is not None:
                job.sink = EventReply(job.sink, failure)


def declared_jobs(bodies: BodyKind | None, replies: ReplyKind | None) -> DeclaredJobs | None:
    """None for what its clients' types decide."""
    return DeclaredJobs(bodies, replies) if bodies or replies else None


def _declared(fields: list[Field], kind: BodyKind) -> list[Field]:
    """Fields of a form, and several inputs over gRPC, stay as they are."""
    if len(fields) != 1 or fields[0].name not in _NAMES:
        return fields
    data = fields[0].data
    return form_fields(data) if kind == "form" else [Field("body", BODY_TYPES[kind], data)]
