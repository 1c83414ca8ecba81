"""What a client is told when its request fails. Both ways of answering use it."""

from __future__ import annotations

import logging
from functools import partial

from msx_frontend.errors import PayloadTooLarge, ServiceError
from msx_frontend.ids import new_request_id
from msx_frontend.net.bugs import reported_to
from msx_frontend.net.http.family import JSON, Failure, Family
from msx_frontend.net.http.wire import RawHeaders, common_headers, error_bytes, reply_headers

reported = partial(reported_to, logging.getLogger("msx.http"))
"""What a client of HTTP is told of an error."""


def failure_reply(family: Family, error: ServiceError, request_id: str) -> tuple[int, RawHeaders, bytes]:
    """Status, headers and body."""
    failure = family.failure(error)
    headers = [] if failure.bare else reply_headers(request_id, list(failure.headers))
    return failure.status, [*headers, (b"content-length", b"%d" % len(failure.body))], failure.body


def plain_failure(error: ServiceError) -> tuple[RawHeaders, bytes]:
    """Headers and body of the reply to what is not a request, and so has no route and no family: TorchServe's form."""
    body = error_bytes(error)
    framing = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    return [*common_headers(new_request_id()), *framing], body


def torchserve_failure(error: ServiceError) -> Failure:
    """TorchServe's form: code, type and message; 413 has neither body nor id. Also for unknown paths."""
    if isinstance(error, PayloadTooLarge):
        return Failure(error.status, b"", (), bare=True)
    return Failure(error.status, error_bytes(error), (*JSON, *error.headers))
