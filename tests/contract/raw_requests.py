"""Requests of jobs as they go over a connection, where their form is what matters: version, method, framing, order."""

from __future__ import annotations

import asyncio
import gzip
import re
from typing import NamedTuple

from msx_net.listening.address import Address

LARGE = 6000
"""Bytes of a body that is larger than the server of these tests takes."""
PIPELINED = 3


class RawRequest(NamedTuple):
    """Bytes for one connection, and what is sent once the server has said something to them."""

    sent: bytes
    then: bytes = b""


def _head(first: str, *headers: str, body: bytes = b"", length: int | None = None, ends: bool = True) -> bytes:
    size = len(body) if length is None else length
    lines = [first, "host: x", "x-request-id: id-1", f"content-length: {size}", *headers]
    lines += ["connection: close"] if ends else []
    return "\r\n".join([*lines, "", ""]).encode() + body


def _chunked(first: str, *headers: str, body: bytes) -> bytes:
    lines = [first, "host: x", "x-request-id: id-1", "transfer-encoding: chunked", "connection: close", *headers]
    return "\r\n".join([*lines, "", ""]).encode() + b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)


_POST = "POST /predictions/m HTTP/1.1"
_INFER = "POST /v2/models/m/infer HTTP/1.1"
_TEXT = "POST /v1/completions HTTP/1.1"
_PACKED = gzip.compress(b'{"inputs": []}', mtime=0)
_PREFLIGHT = ("origin: https://a.example", "access-control-request-method: POST")

REQUESTS = {
    "HTTP/1.0": RawRequest(_head("POST /predictions/m HTTP/1.0", body=b"hello")),
    "HTTP/1.0, GET": RawRequest(_head("GET /predictions/m HTTP/1.0")),
    "HTTP/1.0, pieces": RawRequest(_head("POST /predictions/m HTTP/1.0", body=b"pieces")),
    "HTTP/1.0, fails": RawRequest(_head("POST /predictions/m HTTP/1.0", body=b"fails")),
    "HTTP/1.0, an unknown model": RawRequest(_head("POST /predictions/none HTTP/1.0", body=b"x")),
    "100-continue": RawRequest(_head(_POST, "expect: 100-continue", length=5), b"hello"),
    "100-continue, too large": RawRequest(_head(_POST, "expect: 100-continue", length=LARGE)),
    "100-continue, compressed": RawRequest(
        _head(_INFER, "expect: 100-continue", "content-encoding: gzip", length=len(_PACKED)), _PACKED
    ),
    "100-continue, a wrong priority": RawRequest(
        _head(_POST, "expect: 100-continue", "x-msx-priority: urgent", length=5), b"hello"
    ),
    "pipelined": RawRequest(_head(_POST, body=b"hello", ends=False) * PIPELINED + _head(_POST, body=b"last")),
    "pipelined, the first fails": RawRequest(
        _head(_TEXT, body=b"{", ends=False) + _head(_INFER, body=b'{"inputs": []}')
    ),
    "pipelined, compressed": RawRequest(
        _head(_INFER, "content-encoding: gzip", body=_PACKED, ends=False)
        + _head(_INFER, "content-encoding: gzip", body=b"not gzip", ends=False)
        + _head(_INFER, body=b'{"inputs": []}')
    ),
    "pipelined, a management request": RawRequest(
        _head(_POST, body=b"hello", ends=False) + _head("GET /ping HTTP/1.1", ends=False) + _head(_POST, body=b"last")
    ),
    "chunked": RawRequest(_chunked(_POST, body=b"hello")),
    "chunked, too large": RawRequest(_chunked(_POST, body=bytes(LARGE))),
    "chunked, compressed": RawRequest(_chunked(_INFER, "content-encoding: gzip", body=_PACKED)),
    "chunked, a priority": RawRequest(_chunked(_POST, "x-msx-priority: low", body=b"hello")),
    "chunked, a wrong priority": RawRequest(_chunked(_POST, "x-msx-priority: urgent", body=b"hello")),
    "a wrong priority, without the body": RawRequest(_head(_POST, "x-msx-priority: urgent", length=5, ends=False)),
    "too large, without the body": RawRequest(_head(_POST, length=LARGE)),
    "too large, KServe": RawRequest(_head(_INFER, body=bytes(LARGE))),
    "compressed, empty": RawRequest(_head(_INFER, "content-encoding: gzip")),
    "compressed, without a name of one": RawRequest(
        _head(_INFER, "content-encoding: identity", body=b'{"inputs": []}')
    ),
    "compressed, unknown": RawRequest(_head(_INFER, "content-encoding: br", body=b"x")),
    "compressed, a stream": RawRequest(
        _head(_TEXT, "content-encoding: gzip", body=gzip.compress(b'{"prompt": "x", "stream": true}', mtime=0))
    ),
    "DELETE": RawRequest(_head("DELETE /predictions/m HTTP/1.1", body=b"hello")),
    "PATCH": RawRequest(_head("PATCH /predictions/m HTTP/1.1", body=b"hello")),
    "PROPFIND": RawRequest(_head("PROPFIND /predictions/m HTTP/1.1", body=b"hello")),
    "HEAD": RawRequest(_head("HEAD /predictions/m HTTP/1.1")),
    "OPTIONS": RawRequest(_head("OPTIONS /predictions/m HTTP/1.1", body=b"hello")),
    "OPTIONS, a preflight": RawRequest(_head("OPTIONS /predictions/m HTTP/1.1", *_PREFLIGHT)),
    "OPTIONS, a preflight, KServe": RawRequest(_head("OPTIONS /v2/models/m/infer HTTP/1.1", *_PREFLIGHT)),
    "a slash at the end": RawRequest(_head("POST /predictions/m/ HTTP/1.1", body=b"hello")),
    "a fragment": RawRequest(_head("POST /predictions/m?a=b#c HTTP/1.1", body=b"hello")),
    "an absolute target": RawRequest(_head("POST http://x/predictions/m HTTP/1.1", body=b"hello")),
    "an upgrade": RawRequest(_head(_POST, "upgrade: websocket", "connection: upgrade", body=b"hello")),
}


async def exchanged(address: Address, request: RawRequest, key: str = "") -> str:
    """All that the server says until it closes the connection, without what differs from request to request."""
    sent = (
        request.sent.replace(b"host: x\r\n", b"host: x\r\nauthorization: %b\r\n" % key.encode())
        if key
        else request.sent
    )
    reader, writer = await asyncio.open_connection(address.host, address.port)
    try:
        writer.write(sent)
        said = await reader.read(1) if request.then else b""
        writer.write(request.then)
        said += await asyncio.wait_for(reader.read(), 120)
    finally:
        writer.close()
    text = re.sub(r"(?m)^(date|retry-after): [^\r]*", r"\1: *", said.decode("latin-1"))
    text = re.sub(r'"created":\d+', '"created":*', text)
    return re.sub(r"(content-length: \d+\r\n)(connection: keep-alive\r\n)", r"\2\1", text)
