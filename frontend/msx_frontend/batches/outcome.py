"""The outcome of one line, as a line of the output file or of the error file."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from msx_core.request_ids import new_request_id
from msx_frontend.deferred.records import LateReply

GOOD = range(200, 300)


class _Error(msgspec.Struct):
    code: str
    message: str


class _Response(msgspec.Struct):
    status_code: int
    request_id: str
    body: msgspec.Raw | str


class _Written(msgspec.Struct):
    id: str
    custom_id: str
    response: _Response | None
    error: _Error | None


class LineOutcome(NamedTuple):
    """`data`: the line with its line feed."""

    custom_id: str
    is_good: bool
    data: bytes


def answered(custom_id: str, request_id: str, reply: LateReply) -> LineOutcome:
    """Tell what the model has answered, whatever its status is."""
    response = _Response(reply.status, request_id, _body(reply.body))
    return _outcome(custom_id, reply.status in GOOD, response, None)


def unanswered(custom_id: str, code: str, message: str) -> LineOutcome:
    """Tell why nobody has answered the line."""
    return _outcome(custom_id, False, None, _Error(code, message))


def _outcome(custom_id: str, good: bool, response: _Response | None, error: _Error | None) -> LineOutcome:
    id = f"batch_req_{new_request_id().replace('-', '')}"
    return LineOutcome(custom_id, good, msgspec.json.encode(_Written(id, custom_id, response, error)) + b"\n")


def _body(body: bytes) -> msgspec.Raw | str:
    """JSON on one line; what is no JSON as a text."""
    try:
        return msgspec.Raw(msgspec.json.format(body.decode(), indent=-1))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return body.decode("utf-8", "replace")
