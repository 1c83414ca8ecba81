"""Requests as HTTP/1.1 and HTTP/2 write them, in pieces that an attack may cut, and their replies."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Literal, NamedTuple, Protocol

from hpack import Decoder, Encoder

from msx_net.http2 import frames
from msx_net.http2.errors import ErrorCode
from tests.adversary.asks import Ask
from tests.soak.client import RawClient

FRAME = 1 << 14
WINDOW = 1 << 30
PATIENCE = 60.0
"""Seconds until a client that waits for a reply calls the server stuck."""
STREAM = 1.0
"""Seconds that it reads of a reply that may have no end."""


class Answer(NamedTuple):
    status: int
    """0: the connection, or the stream, ended without one."""
    body: bytes = b""
    grpc: str = ""
    """The status of a call."""
    whole: bool = False
    """It came to its end, so that the connection may have another one."""

    @property
    def accepted(self) -> bool:
        return self.status < 300 and self.status > 0 and self.grpc in ("", "0")

    def __str__(self) -> str:
        return f"{self.status} {self.grpc} {self.body[:300]!r}"


class Wire(Protocol):
    """One connection."""

    client: RawClient

    def head(self, ask: Ask, key: str, length: int | None, headers: dict[str, str] | None = None) -> bytes:
        """Begin a request. `length`: bytes of the body, None where the head does not say it."""

    def data(self, piece: bytes, *, end: bool = False) -> bytes:
        """A piece of the body of the last request; `end`: it is the last one."""

    async def answer(self) -> Answer:
        """The next reply, or how the connection ended without one."""


def whole(wire: Wire, ask: Ask, key: str, headers: dict[str, str] | None = None) -> bytes:
    """The request, with the length of its body in its head."""
    head = wire.head(ask, key, len(ask.body), headers)
    return head + wire.data(ask.body, end=True) if ask.body else head


async def answer_to(wire: Wire, ask: Ask, key: str, headers: dict[str, str] | None = None) -> Answer:
    with contextlib.suppress(ConnectionError):
        wire.client.send(whole(wire, ask, key, headers))
        await wire.client.sent()
    return await wire.answer()


def _headers(ask: Ask, key: str, more: dict[str, str] | None) -> dict[str, str]:
    found = {"content-type": ask.content_type, "authorization": f"Bearer {key}" if key else ""}
    found |= {"te": "trailers"} if ask.grpc else {}
    return {name: value for name, value in {**found, **(more or {})}.items() if value}


class Http1:
    def __init__(self, client: RawClient) -> None:
        self.client = client
        self._chunked = False

    def head(self, ask: Ask, key: str, length: int | None, headers: dict[str, str] | None = None) -> bytes:
        self._chunked = length is None
        own = {"host": "localhost", **_headers(ask, key, headers)}
        lines = [f"{ask.method} {ask.path} HTTP/1.1", *(f"{name}: {value}" for name, value in own.items())]
        lines += ["transfer-encoding: chunked"] if length is None else [f"content-length: {length}"] if length else []
        return "\r\n".join([*lines, "", ""]).encode("latin-1")

    def data(self, piece: bytes, *, end: bool = False) -> bytes:
        if not self._chunked:
            return piece
        chunk = b"%x\r\n%b\r\n" % (len(piece), piece) if piece else b""
        return chunk + (b"0\r\n\r\n" if end else b"")

    async def answer(self) -> Answer:
        status, body, end = 0, b"", False
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            status, fields = await asyncio.wait_for(self.client.reply_head(), PATIENCE)
            with contextlib.suppress(asyncio.TimeoutError):
                body, end = await asyncio.wait_for(self.client.reply_body(fields), STREAM)
        return Answer(status, body, whole=end)


class _Http2Reply:
    def __init__(self) -> None:
        self.status, self.body, self.grpc, self.ended = 0, b"", "", False

    def take(self, kind: int, flags: int, payload: bytes, fields: dict[str, str]) -> None:
        self.status = int(fields.get(":status", self.status))
        self.grpc = fields.get("grpc-status", self.grpc)
        self.body += payload if kind == frames.DATA else b""
        framed = kind in (frames.HEADERS, frames.DATA)
        self.ended = kind == frames.RST_STREAM or bool(framed and flags & frames.END_STREAM)


class Http2:
    """`window`: bytes of a reply that may come."""

    def __init__(self, client: RawClient, window: int = WINDOW) -> None:
        self.client, self._window = client, window
        self._stream = -1
        self._encoder, self._decoder = Encoder(), Decoder()

    def head(self, ask: Ask, key: str, length: int | None, headers: dict[str, str] | None = None) -> bytes:
        self._stream += 2
        own = _headers(ask, key, headers)
        host = own.pop("host", "localhost")
        fields = [(":method", ask.method), (":scheme", "http"), (":authority", host), (":path", ask.path), *own.items()]
        fields += [("content-length", str(length))] if length and not ask.grpc else []
        block = self._encoder.encode(fields, huffman=False)  # which would take the most time of all
        return self._preface() + frames.header_frames(self._stream, block, end=length == 0, max_size=FRAME)

    def data(self, piece: bytes, *, end: bool = False) -> bytes:
        """Without a look at the server's windows."""
        if not piece and not end:
            return b""
        pieces = [piece[start : start + FRAME] for start in range(0, len(piece), FRAME)] or [b""]
        made = [frames.frame(frames.DATA, 0, self._stream, one) for one in pieces[:-1]]
        return b"".join([*made, frames.frame(frames.DATA, frames.END_STREAM if end else 0, self._stream, pieces[-1])])

    def reset(self) -> bytes:
        """End the last request without its reply."""
        return frames.rst_stream(self._stream, ErrorCode.CANCEL)

    def _preface(self) -> bytes:
        if self._stream > 1:
            return b""
        settings = frames.frame(frames.SETTINGS, 0, 0, b"\0\4" + self._window.to_bytes(4, "big"))
        return frames.PREFACE + settings + frames.window_update(0, WINDOW)

    async def answer(self) -> Answer:
        """Answer of the newest stream."""
        reply = _Http2Reply()
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            await asyncio.wait_for(self._read(reply, until="head"), PATIENCE)
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._read(reply, until="end"), STREAM)
        return Answer(reply.status, reply.body, reply.grpc, whole=reply.ended)

    async def _read(self, reply: _Http2Reply, until: Literal["head", "end"]) -> None:
        while not (reply.ended or (until == "head" and reply.status)):
            kind, flags, stream, payload = await self._frame()
            fields = self._decoder.decode(payload) if kind == frames.HEADERS else []
            if stream == self._stream:
                reply.take(kind, flags, payload, {str(name): str(value) for name, value in fields})

    async def _frame(self) -> tuple[int, int, int, bytes]:
        head = await self.client.reader.readexactly(frames.HEAD_SIZE)
        high, low, kind, flags, stream_id = frames.HEAD.unpack(head)
        return kind, flags, stream_id & frames.ID_MASK, await self.client.reader.readexactly(high << 8 | low)
