"""One request over HTTP/2, on a connection of its own."""

from __future__ import annotations

from hpack import Decoder, Encoder

from msx_net.http2 import frames
from tests.soak.client import RawClient, Reply

WINDOW = 1 << 30
"""Bytes: no reply of the soak waits for it, unless its client wants that."""


def post(path: str, body: bytes, content_type: str, window: int = WINDOW) -> bytes:
    """A connection's first bytes, with a request as its stream 1. `window`: bytes of the reply that may come."""
    fields = [(":method", "POST"), (":scheme", "http"), (":authority", "soak"), (":path", path)]
    fields += [("content-type", content_type), ("content-length", str(len(body)))]
    settings = frames.frame(frames.SETTINGS, 0, 0, b"\0\4" + window.to_bytes(4, "big"))
    head = frames.header_frames(1, Encoder().encode(fields), end=False, max_size=1 << 14)
    pieces = [body[start : start + (1 << 14)] for start in range(0, len(body), 1 << 14)]
    data = b"".join(frames.frame(frames.DATA, 0, 1, piece) for piece in pieces)
    end = frames.frame(frames.DATA, frames.END_STREAM, 1)
    return b"".join([frames.PREFACE, settings, frames.window_update(0, WINDOW), head, data, end])


async def reply_to(client: RawClient) -> Reply:
    """The reply of stream 1. Raises ConnectionError, or IncompleteReadError where the connection ends before it."""
    decoder, status, body = Decoder(), 0, b""
    while True:
        high, low, kind, flags, _ = frames.HEAD.unpack(await client.reader.readexactly(frames.HEAD_SIZE))
        payload = await client.reader.readexactly(high << 8 | low)
        if kind in (frames.RST_STREAM, frames.GOAWAY):
            return Reply(status, body, whole=False)
        if kind == frames.HEADERS:
            status = int({bytes(name): value for name, value in decoder.decode(payload, raw=True)}[b":status"])
        elif kind == frames.DATA:
            body += payload
        if kind in (frames.HEADERS, frames.DATA) and flags & frames.END_STREAM:
            return Reply(status, body, whole=True)
