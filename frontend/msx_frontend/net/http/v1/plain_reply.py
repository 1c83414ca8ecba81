"""The answer to what is not a request, and so has no route and no family: TorchServe's form."""

from __future__ import annotations

from msx_frontend.errors import ServiceError
from msx_frontend.ids import new_request_id
from msx_frontend.net.http.response_head import CLOSE
from msx_frontend.net.http.wire import RawHeaders, common_headers, error_bytes, head_bytes


def plain_reply(error: ServiceError, defaults: RawHeaders) -> bytes:
    body = error_bytes(error)
    framing = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body)), CLOSE]
    return head_bytes(error.status, [*defaults, *common_headers(new_request_id()), *framing]) + body
