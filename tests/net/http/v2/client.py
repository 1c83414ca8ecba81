"""A client of one HTTP/2 connection of a REST port, without a network."""

from __future__ import annotations

from dataclasses import dataclass, field

from msx_core.service_errors import ServiceError
from msx_net.http.exchange import Exchange as Served
from msx_net.http.v2.connection import RequestConnection
from msx_net.http.v2.port import Port
from msx_net.http.wire import StreamBroken
from msx_net.http2 import frames
from msx_net.http2.errors import ErrorCode
from msx_net.http2.headers import Headers
from msx_net.http2.limits import Limits
from msx_net.http2.stream import Stream
from msx_net.http2.stream_events import StreamEvents
from tests.net.http.client import Exchange
from tests.net.http2.peer import Frame, Peer

FRAME = 1 << 14


@dataclass
class Reply:
    """As far as it has come."""

    status: int = 0
    interim: list[int] = field(default_factory=list)
    """1xx replies before it."""
    headers: dict[str, str] = field(default_factory=dict)
    parts: list[bytes] = field(default_factory=list)
    """One of each DATA frame that was not empty."""
    ended: bool = False
    reset: ErrorCode | None = None

    @property
    def body(self) -> bytes:
        return b"".join(self.parts)


def head(method: str, target: str, **headers: str) -> Headers:
    named = [(name.replace("_", "-").encode(), value.encode("latin-1")) for name, value in headers.items()]
    fields = {":method": method, ":scheme": "http", ":authority": "here:8080", ":path": target}
    return [*((name.encode(), value.encode("latin-1")) for name, value in fields.items()), *named]


class Client(Peer):
    def __init__(self, served: Served, *, limits: Limits | None = None) -> None:
        self.port = Port(served, served.direct())
        self.connection = RequestConnection(self.port)
        self.replies: dict[int, Reply] = {}
        self._block = b""
        super().__init__(limits)
        self.connection.protocol = self.protocol

    def accept(self, stream: Stream, headers: Headers, ended: bool) -> StreamEvents:  # type: ignore[override]
        return self.connection.accept(stream, headers, ended)

    def begin(self, stream_id: int, fields: Headers, body: bytes | None = None, *, ended: bool = True) -> None:
        """Without a body the request ends with its headers; not `ended`, more of it is to come."""
        end = frames.END_STREAM if body is None and ended else 0
        block = self.encoder.encode(fields)
        self.send(frames.frame(frames.HEADERS, frames.END_HEADERS | end, stream_id, block))
        if body is not None:
            self.send_body(stream_id, body, ended=ended)

    def send_body(self, stream_id: int, body: bytes, *, ended: bool = True) -> None:
        pieces = [body[start : start + FRAME] for start in range(0, len(body), FRAME)] or [b""]
        for piece in pieces[:-1]:
            self.send(frames.frame(frames.DATA, 0, stream_id, piece))
        self.send(frames.frame(frames.DATA, frames.END_STREAM if ended else 0, stream_id, pieces[-1]))

    def reset(self, stream_id: int) -> None:
        self.send(frames.rst_stream(stream_id, ErrorCode.CANCEL))

    async def reply(self, stream_id: int) -> Reply:
        """Reply until now, once the loop's turn is over."""
        for frame in await self.received():
            self._take(frame)
        return self.replies.setdefault(stream_id, Reply())

    async def whole(self, stream_id: int) -> Reply:
        while not ((reply := await self.reply(stream_id)).ended or reply.reset is not None):
            continue
        return reply

    def _take(self, frame: Frame) -> None:
        reply = self.replies.setdefault(frame.stream_id, Reply())
        if frame.kind == frames.RST_STREAM:
            reply.reset = ErrorCode(frame.number)
        elif frame.kind in (frames.HEADERS, frames.CONTINUATION):
            self._block += frame.payload
            if frame.flags & frames.END_HEADERS:
                block, self._block = self._block, b""
                self._take_head(reply, block)
        elif frame.kind == frames.DATA and frame.payload:
            reply.parts.append(frame.payload)
        if frame.kind in (frames.HEADERS, frames.DATA):
            reply.ended = bool(frame.flags & frames.END_STREAM)

    def _take_head(self, reply: Reply, block: bytes) -> None:
        fields = [
            (bytes(name).decode(), bytes(value).decode("latin-1"))
            for name, value in self.decoder.decode(block, raw=True)
        ]
        status = int(fields[0][1])
        if status < 200:
            reply.interim.append(status)
            return
        assert not reply.status, "a second head"
        assert len({name for name, _ in fields}) == len(fields), f"a header twice: {fields}"
        reply.status, reply.headers = status, dict(fields[1:])


class Http2Exchange(Exchange):
    """One request on a connection of its own, and its reply."""

    def open(self, served: Served, fields: Headers, body: bytes | None) -> None:
        self._client = Client(served)
        missing = body is None or len(body) < int(dict(fields).get(b"content-length", b"0"))
        self._client.begin(1, fields, body or None, ended=not missing)
        self._left = False

    def send_body(self, data: bytes, *, more: bool = False) -> None:
        self._client.send_body(1, data, ended=not more)

    def leave(self) -> None:
        self._left = True
        self._client.protocol.connection_lost(None)

    async def until_chunks(self, count: int) -> None:
        while len(self.chunks) < count:
            await self._look()

    async def finish(self) -> Exchange:
        reply = await self._look()
        while not (reply.ended or reply.reset is not None or self._left):
            reply = await self._look()
        if self.status and not self.ended:
            raise StreamBroken(ServiceError("The stream was reset."))
        return self

    async def _look(self) -> Reply:
        reply = await self._client.reply(1)
        self.status, self.headers, self.chunks, self.ended = reply.status, reply.headers, reply.parts, reply.ended
        return reply


def begin_http2(served: Served, method: str, target: str, body: bytes | None = b"", **headers: str) -> Exchange:
    exchange = Http2Exchange()
    exchange.open(served, head(method, target, **headers), body)
    return exchange
