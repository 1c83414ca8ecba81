"""A gRPC client that sends what no library would, and keeps all that comes back."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

from hpack import Decoder, Encoder

from msx_net.http2 import frames
from msx_net.http2.errors import ErrorCode

Fields = Sequence[tuple[str, str]]
LIMIT = 120
"""Seconds."""
_PSEUDO = (":method", ":scheme", ":path", ":authority")
_HEADERS = {"te": "trailers", "content-type": "application/grpc", ":authority": "a"}


class RawAnswer(NamedTuple):
    status: str
    """Status of HTTP; or how the stream ended without one."""
    messages: tuple[bytes, ...] = ()
    trailers: tuple[tuple[str, str], ...] = ()
    """Sorted; without those that are empty, and without what the transport says of itself."""


class RawCall:
    """One call, on a connection of its own."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._decoder = Decoder()
        self._status, self._body = "", b""

    @classmethod
    async def begin(cls, address: str, path: str, fields: Fields = ()) -> RawCall:
        host, _, port = address.rpartition(":")
        call = cls(*await asyncio.open_connection(host, int(port)))
        known: dict[str, str] = {":method": "POST", ":scheme": "http", ":path": path, **_HEADERS, **dict(fields)}
        fields = sorted(known.items(), key=lambda field: field[0] not in _PSEUDO)
        block = Encoder().encode(fields)
        window = frames.frame(frames.SETTINGS, 0, 0, (4).to_bytes(2, "big") + (1 << 30).to_bytes(4, "big"))
        call.send(frames.PREFACE, window, frames.window_update(0, 1 << 30))
        call.send(frames.header_frames(1, block, end=False, max_size=1 << 14))
        return call

    def send(self, *parts: bytes) -> None:
        self._writer.write(b"".join(parts))

    def write(self, *messages: bytes, end: bool = True) -> None:
        """Messages with their prefixes."""
        data = b"".join(messages)
        pieces = [data[start : start + (1 << 14)] for start in range(0, len(data), 1 << 14)]
        for piece in pieces:
            self.send(frames.frame(frames.DATA, 0, 1, piece))
        if end:
            self.send(frames.frame(frames.DATA, frames.END_STREAM, 1))

    def cancel(self) -> None:
        self.send(frames.rst_stream(1, ErrorCode.CANCEL))

    async def answer(self, messages: int = 1 << 30) -> RawAnswer:
        """All that the server says, or what it says up to so many messages; the connection ends then."""
        try:
            return await self.heard(messages)
        finally:
            self.close()

    async def heard(self, messages: int = 1 << 30) -> RawAnswer:
        """The same, and the call goes on. Messages are counted from its beginning."""
        return await asyncio.wait_for(self._read(messages), LIMIT)

    def close(self) -> None:
        self._writer.close()

    async def _read(self, messages: int) -> RawAnswer:
        fields = dict[str, str]()
        while True:
            kind, flags, stream_id, payload = await self._frame()
            if kind == frames.RST_STREAM and stream_id == 1:
                return RawAnswer(f"reset {int.from_bytes(payload, 'big')}")
            if kind == frames.HEADERS:
                fields = {str(name): str(value) for name, value in self._decoder.decode(payload)}
                self._status = self._status or fields[":status"]
            elif kind == frames.DATA:
                self._body += payload
            if len(found := _messages(self._body)) >= messages:
                return RawAnswer(self._status, found)
            if flags & frames.END_STREAM and kind in (frames.HEADERS, frames.DATA):
                kept = {name: value for name, value in fields.items() if value and name not in _NOT_COMPARED}
                return RawAnswer(self._status, found, tuple(sorted(kept.items())))

    async def _frame(self) -> tuple[int, int, int, bytes]:
        head = await self._reader.readexactly(frames.HEAD_SIZE)
        high, low, kind, flags, stream_id = frames.HEAD.unpack(head)
        return kind, flags, stream_id & frames.ID_MASK, await self._reader.readexactly(high << 8 | low)


_NOT_COMPARED = (":status", "grpc-accept-encoding", "grpc-encoding", "accept-encoding")


def _messages(body: bytes) -> tuple[bytes, ...]:
    found = []
    while body:
        end = 5 + int.from_bytes(body[1:5], "big")
        found.append(body[5:end])
        body = body[end:]
    return tuple(found)


def framed(message: bytes, flag: int = 0) -> bytes:
    return bytes([flag]) + len(message).to_bytes(4, "big") + message
