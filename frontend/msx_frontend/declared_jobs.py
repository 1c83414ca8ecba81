"""Gives jobs the types that `bodies:` and `replies:` of their model or route declare, whatever their clients state."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, cast

from msx_core.bodies import media_type
from msx_core.declared import BODY_TYPES, REPLY_TYPES
from msx_core.form_fields import FORM, MULTIPART
from msx_core.methods import METHOD
from msx_core.reply_head import CONTENT_TYPE
from msx_core.service_errors import CompressionSwitchedOff
from msx_frontend.body_fields import form_fields, merge_fields
from msx_frontend.job import EXPLAIN, PREDICT, STREAM, Field, Job
from msx_frontend.job_headers import accepting
from msx_net.http.compressed_reply import compressed
from msx_net.http.event_reply import HTTP, EventReply

if TYPE_CHECKING:
    from msx_core.declared import BodyKind, ReplyKind
    from msx_net.http.compressed_reply import Compresses

_NAMES = ("body", "data")
"""Fields that hold a whole request: a body has the first name, and gRPC's clients use both."""


class DeclaredJobs(NamedTuple):
    bodies: BodyKind | None
    replies: ReplyKind | None
    compression: bool = False

    @property
    def takes_whole(self) -> bool:
        """A body that its client states to be a form is left in one piece."""
        return self.bodies not in (None, "form")

    def takes_packed(self, model: str, encoding: str) -> bool:
        """Such a body is decompressed. Raises CompressionSwitchedOff where it could not be read."""
        if not self.compression and self.bodies not in (None, "raw"):
            raise CompressionSwitchedOff(model, encoding)
        return self.compression

    def enter(self, job: Job) -> None:
        """Give the job the types that the service declares. Raises BadRequest for a form that cannot be read."""
        kind = job.kind
        if kind not in (PREDICT, STREAM, EXPLAIN) and not kind.startswith(METHOD):
            return
        if self.bodies is not None:
            job.fields = _declared(job, self.bodies)
        if self.compression and hasattr(job.sink, "write_answer"):
            job.sink = compressed(cast("Compresses", job.sink))
        if self.replies is not None:
            job.headers = accepting(job.headers, REPLY_TYPES[self.replies])
            if self.replies == "events" and (known := getattr(job.sink, HTTP, None)) is not None:
                job.sink = EventReply(job.sink, known.family.failure)


def declared_jobs(bodies: BodyKind | None, replies: ReplyKind | None, *, compression: bool) -> DeclaredJobs | None:
    """None for what its clients' types and the server's keys decide."""
    return DeclaredJobs(bodies, replies, compression) if bodies or replies or compression else None


def _declared(job: Job, kind: BodyKind) -> list[Field]:
    """Fields of a form, and several inputs over gRPC, stay as they are; parameters of the URL stand beside a body."""
    fields = job.fields
    body = next((field for field in fields if field.name in _NAMES and _is_whole(field, fields)), None)
    if body is None or (kind == "form" and _states_form(job)):
        return fields
    own = form_fields(body.data) if kind == "form" else [Field("body", BODY_TYPES[kind], body.data)]
    return own if len(fields) == 1 else merge_fields(own, [field for field in fields if field is not body])


def _is_whole(field: Field, fields: list[Field]) -> bool:
    """The only input, or a body, which has a content type, or "", where inputs beside it have none."""
    return len(fields) == 1 or (field.name == "body" and field.content_type is not None)


def _states_form(job: Job) -> bool:
    """The fields are those of the client's form already, even where the only one is named `body`."""
    stated = next((value for name, value in job.headers if name.lower() == CONTENT_TYPE), "")
    return media_type(stated) in (FORM, MULTIPART)
