"""Format common to every HTTP reply: TorchServe's headers, its JSON, its error body."""

from __future__ import annotations

import http
import re
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any, Protocol, TypeVar

import msgspec

from msx_core.reply_head import JSON_TYPE, ROOM, size_of, too_large, why_not
from msx_core.request_ids import new_request_id, valid_request_id
from msx_core.service_errors import HandlerFailed, PayloadTooLarge, ServiceError
from msx_net.logged_calls import Entry, LoggedCall

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
RawHeaders = list[tuple[bytes, bytes]]

REQUEST = "msx.request"
"""The key of a scope under which the app finds its `AppRequest`."""

CACHE_HEADERS: RawHeaders = [
    (b"pragma", b"no-cache"),
    (b"cache-control", b"no-cache; no-store, must-revalidate, private"),
    (b"expires", b"Thu, 01 Jan 1970 00:00:00 UTC"),
]
"""The same as TorchServe's, to the letter."""

CACHE_BYTES = b"".join(b"%b: %b\r\n" % header for header in CACHE_HEADERS)

JSON_HEADERS = [JSON_TYPE]
"""The headers of a handler's reply that states only that it is JSON."""

_NOT_IN_NAMES = re.compile(rb"[^!#$%&'*+\-.^_`|~0-9A-Za-z]")
"""Characters that the name of a header cannot have (RFC 9110, 5.6.2: a token)."""

_NOT_IN_VALUES = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
"""Control characters that are not in the value of a header (RFC 9110, 5.5)."""

PHRASES = {status.value: status.phrase.encode() for status in http.HTTPStatus}
"""The usual phrases of status lines."""

STATUS_LINE = {status: b"HTTP/1.1 %d %b\r\n" % (status, PHRASES.get(status, b"")) for status in range(100, 600)}

BODYLESS = (204, 304)
"""Statuses whose replies have no body."""

CHUNKED = (b"transfer-encoding", b"chunked")
UNBUFFERED = (b"x-accel-buffering", b"no")
"""Asks nginx to pass on each chunk of a stream as it comes (ngx_http_proxy_module, proxy_buffering)."""
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"

_SERVERS_OWN = {b"x-request-id", b"content-length", b"transfer-encoding", b"connection", b"ts_stream_next"}
"""Headers that a handler cannot set: the server knows how the reply is framed."""

B = TypeVar("B", bytes, bytearray)


class LogsReplies(Protocol):
    """The access log."""

    def write(self, call: LoggedCall, status: int) -> None: ...

    def write_entry(self, entry: Entry) -> None:
        """Log a prediction."""


class ClientGone(Exception):
    """The client left before its request was complete."""


class StreamBroken(Exception):
    """A reply that has begun cannot be finished: the connection is cut, so that it does not look complete."""

    def __init__(self, cause: ServiceError) -> None:
        super().__init__(cause.message)
        self.status = cause.status


def request_id_of(given: bytes | None) -> str:
    """The client's `x-request-id` where it has one, else a new one."""
    return valid_request_id(given) or new_request_id()


def json_bytes(value: Any) -> bytes:
    """JSON as TorchServe writes it: two spaces, and a line feed at the end."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"


def error_bytes(error: ServiceError, *, own: bool = False) -> bytes:
    """`own`: the type is one of MSX where TorchServe's name would mislead."""
    named = error.own_type if own else error.type
    return json_bytes({"code": error.status, "type": named, "message": error.message})


async def send_whole(send: Send, status: int, headers: Iterable[tuple[bytes, bytes]], body: bytes) -> None:
    if status in BODYLESS:
        body, sized = b"", [*headers]
    else:
        sized = [*headers, (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": sized})
    await send({"type": "http.response.body", "body": body})


def head_bytes(status: int, headers: RawHeaders, reason: bytes = b"") -> bytes:
    """The head of a reply as it goes out; with the usual phrase if `reason` is empty."""
    line = b"HTTP/1.1 %d %b\r\n" % (status, reason) if reason else STATUS_LINE[status]
    return b"".join([line, *(b"%b: %b\r\n" % header for header in headers), b"\r\n"])


def common_headers(request_id: str) -> RawHeaders:
    return [(b"x-request-id", request_id.encode()), *CACHE_HEADERS]


def reply_headers(request_id: str, own: list[tuple[str, str]]) -> RawHeaders:
    """The common headers and the handler's `own`, which win."""
    common = common_headers(request_id)
    if not own:
        return common
    wanted = own_headers(own)
    names = {name for name, _ in wanted}
    return [*(pair for pair in common if pair[0] not in names), *wanted]


def stream_framing(own: Iterable[tuple[str, str]], more: RawHeaders) -> RawHeaders:
    """Return the headers of a stream: the family's `more`, and UNBUFFERED unless the handler's `own` have it."""
    has_own = any(name.lower() == "x-accel-buffering" for name, _ in own)
    return more if has_own else [UNBUFFERED, *more]


def own_headers(own: list[tuple[str, str]]) -> RawHeaders:
    """Headers of `own` that a handler may set. Raises HandlerFailed for one that is malformed, or too large."""
    if size_of(own) > ROOM:
        name, value = max(own, key=lambda pair: size_of([pair]))
        raise HandlerFailed(500, too_large(f"the header {name[:40]!r}", size_of([(name, value)])))
    encoded = [_encoded(name, value) for name, value in own]
    return [pair for pair in encoded if pair[0] not in _SERVERS_OWN]


def reason_of(phrase: str) -> bytes:
    """The handler's own phrase for the status line, or nothing. Raises HandlerFailed for what HTTP does not allow."""
    if not phrase:
        return b""
    if len(phrase) > ROOM:
        raise HandlerFailed(500, too_large("a status phrase", len(phrase)))
    if why := why_not(phrase):
        raise HandlerFailed(500, f"The handler set a status phrase that HTTP does not allow: {why}.")
    return phrase.encode("latin-1")


def _encoded(name: str, value: str) -> tuple[bytes, bytes]:
    try:
        pair = name.lower().encode("latin-1"), value.encode("latin-1")
    except UnicodeEncodeError:
        raise HandlerFailed(500, f"The handler set the header {name!r}, which has letters beyond Latin-1.") from None
    if not is_header(*pair):
        raise HandlerFailed(500, f"The handler set the header {name!r}, which HTTP does not allow.")
    return pair


def is_header(name: bytes, value: bytes) -> bool:
    """Whether HTTP allows it."""
    return bool(name) and not _NOT_IN_NAMES.search(name) and not _NOT_IN_VALUES.search(value)


async def read_body(receive: Receive, declared: int | None, limit: int) -> bytes:
    """The whole body. Raises PayloadTooLarge above `limit` bytes, ClientGone when the client leaves."""
    if declared is not None and declared > limit:
        raise request_too_large(limit)
    message = await receive()
    if message["type"] == "http.request" and not message.get("more_body"):
        whole: bytes = message.get("body", b"")
        return _checked(whole, limit)
    parts = bytearray()
    while message["type"] == "http.request":
        parts += message.get("body", b"")
        _checked(parts, limit)
        if not message.get("more_body"):
            return bytes(parts)
        message = await receive()
    raise ClientGone


def _checked(body: B, limit: int) -> B:
    if len(body) > limit:
        raise request_too_large(limit)
    return body


def request_too_large(limit: int) -> PayloadTooLarge:
    return PayloadTooLarge(f"The request is larger than max_request_size ({limit} bytes).")
