"""HTTP/2 for httpx, by prior knowledge: what the server's own protocol says is read by other code than its own."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import httpx
from hpack import Decoder, Encoder

_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_DATA, _HEADERS, _RESET, _SETTINGS, _PING, _GOAWAY, _WINDOW = 0, 1, 3, 4, 6, 7, 8
_END_STREAM = _ACK = 1
_END_HEADERS = 4
_FRAME = 1 << 14
_OF_CONNECTIONS = (b"connection", b"host", b"transfer-encoding", b"keep-alive", b"upgrade")


def _frame(kind: int, flags: int, stream_id: int, payload: bytes = b"") -> bytes:
    return len(payload).to_bytes(3, "big") + bytes((kind, flags)) + stream_id.to_bytes(4, "big") + payload


@dataclass
class _Stream:
    head: asyncio.Future[list[tuple[bytes, bytes]]]
    parts: asyncio.Queue[bytes | httpx.RemoteProtocolError | None] = field(default_factory=asyncio.Queue)
    """None is the end."""
    ended: bool = False

    def fail(self, why: str) -> None:
        if self.ended:
            return
        self.ended = True
        error = httpx.RemoteProtocolError(why)
        if self.head.done():
            self.parts.put_nowait(error)
        else:
            self.head.set_exception(error)


class _Body(httpx.AsyncByteStream):
    def __init__(self, connection: _Connection, stream_id: int, stream: _Stream) -> None:
        self._connection, self._id, self._stream = connection, stream_id, stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while (part := await self._stream.parts.get()) is not None:
            if isinstance(part, httpx.RemoteProtocolError):
                raise part
            self._connection.take(self._id, len(part))
            yield part

    async def aclose(self) -> None:
        self._connection.leave(self._id)


class _Connection:
    """Bodies of requests are small: they are sent without a look at the windows."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._encoder, self._decoder = Encoder(), Decoder()
        self._streams: dict[int, _Stream] = {}
        self._next = 1
        writer.write(_PREFACE + _frame(_SETTINGS, 0, 0))
        self._task = asyncio.ensure_future(self._read())

    async def ask(self, request: httpx.Request) -> httpx.Response:
        if self._task.done():
            raise httpx.ConnectError("the connection was closed")
        stream_id, self._next = self._next, self._next + 2
        stream = self._streams[stream_id] = _Stream(asyncio.get_running_loop().create_future())
        body = await request.aread()
        block = self._encoder.encode(_fields(request))
        self._writer.write(_frame(_HEADERS, _END_HEADERS | (0 if body else _END_STREAM), stream_id, block))
        for start in range(0, len(body), _FRAME):
            end = start + _FRAME >= len(body)
            self._writer.write(_frame(_DATA, _END_STREAM if end else 0, stream_id, body[start : start + _FRAME]))
        try:
            (_, status), *headers = await stream.head
        except asyncio.CancelledError:
            self.leave(stream_id)
            raise
        found = _Body(self, stream_id, stream)
        return httpx.Response(int(status), headers=headers, stream=found, extensions={"http_version": b"HTTP/2"})

    def take(self, stream_id: int, size: int) -> None:
        if size:
            increment = size.to_bytes(4, "big")
            self._writer.write(_frame(_WINDOW, 0, 0, increment) + _frame(_WINDOW, 0, stream_id, increment))

    def leave(self, stream_id: int) -> None:
        stream = self._streams.pop(stream_id, None)
        if stream is not None and not stream.ended:
            self._writer.write(_frame(_RESET, 0, stream_id, (8).to_bytes(4, "big")))

    async def close(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        self._writer.close()

    async def _read(self) -> None:
        try:
            while True:
                head = await self._reader.readexactly(9)
                payload = await self._reader.readexactly(int.from_bytes(head[:3], "big"))
                self._take(head[3], head[4], int.from_bytes(head[5:], "big"), payload)
        except (asyncio.IncompleteReadError, OSError):
            for stream in self._streams.values():
                stream.fail("the connection was closed")

    def _take(self, kind: int, flags: int, stream_id: int, payload: bytes) -> None:
        if kind in (_SETTINGS, _PING) and not flags & _ACK:
            self._writer.write(_frame(kind, _ACK, 0, payload if kind == _PING else b""))
        elif kind == _GOAWAY and payload[4:8] != bytes(4):
            for stream in self._streams.values():
                stream.fail(f"GOAWAY: {payload[8:]!r}")
        elif kind == _HEADERS:
            assert flags & _END_HEADERS
            fields = [(bytes(name), bytes(value)) for name, value in self._decoder.decode(payload, raw=True)]
            if stream_id in self._streams and not fields[0][1].startswith(b"1"):
                self._streams[stream_id].head.set_result(fields)
        if stream_id in self._streams:
            self._take_for(self._streams[stream_id], kind, flags, payload)

    @staticmethod
    def _take_for(stream: _Stream, kind: int, flags: int, payload: bytes) -> None:
        if kind == _DATA:
            stream.parts.put_nowait(payload)
        if kind in (_DATA, _HEADERS) and flags & _END_STREAM:
            stream.ended = True
            stream.parts.put_nowait(None)
        elif kind == _RESET:
            stream.fail(f"RST_STREAM: {int.from_bytes(payload, 'big')}")


class Http2Transport(httpx.AsyncBaseTransport):
    """`AsyncClient(transport=…)`: one connection for each server. `tls` is for https."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self._tls = tls
        self._connections: dict[tuple[str, int | None], _Connection] = {}

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        place = request.url.host, request.url.port
        if place not in self._connections:
            tls = self._tls if request.url.scheme == "https" else None
            self._connections[place] = _Connection(*await asyncio.open_connection(*place, ssl=tls))
        return await self._connections[place].ask(request)

    async def aclose(self) -> None:
        for connection in self._connections.values():
            await connection.close()


def _fields(request: httpx.Request) -> list[tuple[bytes, bytes]]:
    pseudo = [
        (b":method", request.method.encode()),
        (b":scheme", request.url.raw_scheme),
        (b":authority", request.url.netloc),
        (b":path", request.url.raw_path),
    ]
    own = [(name.lower(), value) for name, value in request.headers.raw if name.lower() not in _OF_CONNECTIONS]
    return [*pseudo, *own]
