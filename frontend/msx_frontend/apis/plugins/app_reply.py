"""Checks of the messages that an app sends: ASGI's of a reply, in their order."""

from collections.abc import Iterable
from typing import Any

from msx_net.http.wire import Message, RawHeaders, is_header


def checked_start(message: Message, request_id: str) -> Message:
    """The start of a reply, with `x-request-id` where the app does not set it. Raises RuntimeError for what HTTP does
    not allow."""
    status = message.get("status")
    if not isinstance(status, int) or not 200 <= status <= 599:
        raise RuntimeError(f"{status!r} is not a final HTTP status (200 to 599).")
    headers = _headers(message.get("headers") or ())
    names = [name for name, _ in headers]
    if names.count(b"content-length") > 1:
        raise RuntimeError("A reply has one content-length at most.")
    if b"x-request-id" not in names:
        headers.append((b"x-request-id", request_id.encode()))
    return {"type": "http.response.start", "status": status, "headers": headers}


def _headers(given: Iterable[Any]) -> RawHeaders:
    found: RawHeaders = []
    for name, value in given:
        if not (isinstance(name, bytes) and isinstance(value, bytes) and is_header(name, value)):
            raise RuntimeError(f"HTTP does not allow the header {name!r}.")
        if name.lower() == b"content-length" and not value.isdigit():
            raise RuntimeError(f"{value!r} is not a content-length.")
        found.append((name.lower(), value))
    return found


def checked_body(message: Message) -> Message:
    """Raises RuntimeError for a body that is not bytes."""
    body = message.get("body", b"")
    if not isinstance(body, bytes | bytearray | memoryview):
        raise RuntimeError(f"The body of a reply is {type(body).__name__}, not bytes.")
    return {"type": "http.response.body", "body": bytes(body), "more_body": bool(message.get("more_body", False))}
