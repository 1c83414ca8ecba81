"""One HTTP exchange of the protocol: what a route is given, what it gives, and how that is sent."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

import msgspec

from msx_frontend.apis.kserve.compression import WORTHWHILE, accepted, compress, decompress
from msx_frontend.apis.kserve.errors import failure
from msx_frontend.errors import BadRequest, RequestCancelled, ServiceError
from msx_frontend.held_bytes import HOLD
from msx_frontend.net.http.call import Call
from msx_frontend.net.http.wire import Receive, Send, read_body, reason_of, reply_headers, send_whole

JSON = ("content-type", "application/json")


@dataclass(frozen=True)
class Request:
    """`model` and `version` are those of the path. `receive` tells of a client that leaves, once the body is read."""

    call: Call
    receive: Receive
    model: str = ""
    version: str | None = None
    body: bytes = b""

    def header(self, name: str) -> str:
        """ "" if it is not there."""
        return next((value for known, value in self.call.headers() if known.lower() == name), "")

    def object(self) -> dict[str, Any]:
        """The JSON object of the body, which may be missing. Raises BadRequest."""
        try:
            value = msgspec.json.decode(self.body) if self.body.strip() else {}
        except (msgspec.DecodeError, RecursionError) as error:
            raise BadRequest(f"The request body is not valid JSON: {error}.") from None
        if not isinstance(value, dict):
            raise BadRequest(f"The request body must be a JSON object, not {type(value).__name__}.")
        return value


@dataclass(frozen=True)
class Reply:
    body: bytes
    status: int = 200
    headers: list[tuple[str, str]] = field(default_factory=lambda: [JSON])
    compressible: bool = False
    phrase: str = ""
    """Of the status line; "" is the usual one."""


def json_reply(value: Any, status: int = 200) -> Reply:
    return Reply(msgspec.json.encode(value), status)


async def read(call: Call, receive: Receive, limit: int) -> bytes:
    """The body, decompressed. Raises PayloadTooLarge, UnknownEncoding, BadRequest, ClientGone."""
    body = await read_body(receive, call.content_length, limit)
    encoding = _header(call, "content-encoding").strip().lower()
    if encoding in ("", "identity") or not body:
        return body
    unpacked = await asyncio.to_thread(decompress, body, encoding, limit)
    if (hold := call.scope.get(HOLD)) is not None:
        hold.resize(len(unpacked))
    return unpacked


async def send_reply(send: Send, call: Call, reply: Reply) -> int:
    """Raises HandlerFailed, before anything is sent, for what the handler set and HTTP does not allow."""
    body, headers = reply.body, reply.headers
    encoding = accepted(_header(call, "accept-encoding"))
    if encoding and reply.compressible and len(body) >= WORTHWHILE:
        body = await asyncio.to_thread(compress, body, encoding)
        headers = [*headers, ("content-encoding", encoding), ("vary", "accept-encoding")]
    await send_whole(send, reply.status, reply_headers(call.id, headers), body, reason_of(reply.phrase))
    return reply.status


async def send_failure(send: Send, call: Call, error: ServiceError, *, body_read: bool = True) -> int:
    """Nothing for a client that has left; the connection cannot go on where its body was not read."""
    if isinstance(error, RequestCancelled):
        return error.status
    told = failure(error)
    headers = reply_headers(call.id, [JSON, *told.headers])
    if not body_read:
        headers.append((b"connection", b"close"))
    await send_whole(send, told.status, headers, msgspec.json.encode(told.body))
    return told.status


def _header(call: Call, name: str) -> str:
    return next((value for known, value in call.headers() if known.lower() == name), "")
