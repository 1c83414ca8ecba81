"""Replies to requests that fail: a job's, or one that the app answers."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial

import msgspec

from msx_core.replies.stream_heartbeat import EventTail
from msx_core.request_ids import new_request_id
from msx_core.service_errors import MethodNotAllowed, PayloadTooLarge, RequestCancelled, ResourceNotFound, ServiceError
from msx_net.bugs import reported_to
from msx_net.http.family import JSON, Failure, Family
from msx_net.http.wire import RawHeaders, common_headers, error_bytes, reply_headers

DESCRIBED = (b"link", b'</docs>; rel="service-doc", </openapi.json>; rel="service-desc"')
"""Where the routes are described, for people and for programs: RFC 8631. For each request that the client got wrong."""
MOST_SHOWN = 200
"""Characters of a path."""

reported = partial(reported_to, logging.getLogger("msx.http"))
"""Error for a client of HTTP."""


def failure_reply(family: Family, error: ServiceError, request_id: str) -> tuple[int, RawHeaders, bytes]:
    """Status, headers and body."""
    failure = family.failure(error)
    headers = [] if failure.bare else reply_headers(request_id, list(failure.headers))
    if 400 <= failure.status < 500 and not failure.bare:
        headers.append(DESCRIBED)
    if family.id_header:
        headers.append((family.id_header.encode(), request_id.encode()))
    return failure.status, [*headers, (b"content-length", b"%d" % len(failure.body))], failure.body


def failure_event(family: Family, error: ServiceError, tail: EventTail) -> bytes:
    """The event that tells an error in the middle of a stream of events, in the family's form.

    Nothing where the client has left or the stream stands within an event: it breaks off without a word.
    """
    body = b"" if isinstance(error, RequestCancelled) or not tail.between_events else family.failure(error).body
    name = b"event: %b\n" % family.error_event.encode() if family.error_event else b""
    return b"%bdata: %b\n\n" % (name, msgspec.json.format(body, indent=-1)) if body else b""


def no_route(method: str, path: str, allowed: Sequence[str] = ()) -> ServiceError:
    """`allowed` are the methods of the path, if it is known. TorchServe's sentence, and what came."""
    if not allowed:
        return ResourceNotFound(
            "Requested resource is not found, please refer to API document. "
            f"{method} {path[:MOST_SHOWN]} is not a route of this address; GET /docs shows those that are."
        )
    methods = ", ".join(allowed)
    error = MethodNotAllowed(
        "Requested method is not allowed, please refer to API document. "
        f"{path[:MOST_SHOWN]} takes {methods}, not {method}; GET /docs describes it."
    )
    error.headers = (("allow", methods),)
    return error


def plain_failure(error: ServiceError) -> tuple[RawHeaders, bytes]:
    """Headers and body of the reply to what is not a request, and so has no route and no family: TorchServe's form."""
    body = error_bytes(error)
    framing = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    return [*common_headers(new_request_id()), *framing], body


def torchserve_failure(error: ServiceError) -> Failure:
    """TorchServe's form: code, type and message; 413 has neither body nor id. Also for unknown paths."""
    return _failure(error, own=False)


def own_failure(error: ServiceError) -> Failure:
    """The same form for what TorchServe does not have: an internal error has a type that says what it is."""
    return _failure(error, own=True)


def _failure(error: ServiceError, *, own: bool) -> Failure:
    if isinstance(error, PayloadTooLarge):
        return Failure(error.status, b"", (), bare=True)
    return Failure(error.status, error_bytes(error, own=own), (*JSON, *error.headers))
