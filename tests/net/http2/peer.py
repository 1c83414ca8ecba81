"""A client of one connection: frames in, and what comes out; nothing here is scheduled but by the test."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass, field
from typing import Any, ParamSpec, cast

from hpack import Decoder, Encoder

from msx_net.http2 import frames
from msx_net.http2.connection import Http2Protocol
from msx_net.http2.errors import ErrorCode
from msx_net.http2.header_blocks import encode_headers
from msx_net.http2.headers import Headers
from msx_net.http2.limits import Limits
from msx_net.http2.stream import Stream
from tests.loops import run

P = ParamSpec("P")

REQUEST: Headers = [(b":method", b"POST"), (b":scheme", b"http"), (b":path", b"/p"), (b"te", b"trailers")]
OK = encode_headers([(b":status", b"200")])
STATUS = encode_headers([(b"grpc-status", b"0")])


def in_loop(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """A test that needs a running loop."""

    @functools.wraps(test)
    def runs(*args: P.args, **kwargs: P.kwargs) -> None:
        run(test(*args, **kwargs))

    return runs


@dataclass
class Frame:
    kind: int
    flags: int
    stream_id: int
    payload: bytes

    @property
    def number(self) -> int:
        """The first four bytes, as most frames without a body have them."""
        return int.from_bytes(self.payload[:4], "big")


class FakeTransport:
    """Keeps what is written; a slow reader is the test's `pause_writing`."""

    def __init__(self) -> None:
        self.written = bytearray()
        self.writes = 0
        self.unsent = 0
        self.ended = False
        """No more is written."""
        self.closed = False
        self.aborted = False
        self.paused = False
        """It reads nothing."""

    def write(self, data: bytes) -> None:
        assert not self.ended
        if not self.closed:
            self.written += data
            self.writes += 1

    def pause_reading(self) -> None:
        assert not self.closed
        self.paused = True

    def resume_reading(self) -> None:
        assert not self.closed
        self.paused = False

    def get_write_buffer_size(self) -> int:
        return self.unsent

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        self.ended = True

    def close(self) -> None:
        self.closed = True

    def abort(self) -> None:
        self.closed = self.aborted = True

    def is_closing(self) -> bool:
        return self.closed

    def get_extra_info(self, name: str) -> Any:
        return {"peername": ("10.0.0.1", 4711)}.get(name)


@dataclass
class Owner:
    """Owner of a stream: keeps the events."""

    stream: Stream
    headers: Headers
    over: bool
    body: bytes = b""
    reasons: list[str] = field(default_factory=list)
    drains: int = 0
    slow: list[str] = field(default_factory=list)

    def data(self, data: bytes) -> None:
        assert not self.over
        assert data
        self.body += data

    def ended(self) -> None:
        assert not self.over
        self.over = True

    def lost(self, reason: str) -> None:
        self.reasons.append(reason)

    def too_slow(self, reason: str) -> None:
        self.slow.append(reason)

    def drained(self) -> None:
        assert not self.stream.blocked
        self.drains += 1


class Peer:
    """The client's end; it has said its preface and SETTINGS unless `silent`."""

    def __init__(self, limits: Limits | None = None, *, silent: bool = False) -> None:
        self.owners: dict[int, Owner] = {}
        self.lost: list[Http2Protocol] = []
        self.transport = FakeTransport()
        self.protocol = Http2Protocol(self.accept, limits or Limits(), self.lost.append)
        self.protocol.connection_made(cast(asyncio.Transport, self.transport))
        self.encoder, self.decoder = Encoder(), Decoder()
        self.waited = 0.0
        if not silent:
            self.protocol.data_received(frames.PREFACE + frames.frame(frames.SETTINGS, 0, 0))

    def accept(self, stream: Stream, headers: Headers, ended: bool) -> Owner:
        self.owners[stream.id] = Owner(stream, headers, ended)
        return self.owners[stream.id]

    def send(self, *parts: bytes) -> None:
        self.protocol.data_received(b"".join(parts))

    def request(self, stream_id: int, body: bytes | None = None, headers: Headers = REQUEST) -> Owner:
        """A whole one; without a body it ends with its headers."""
        block = self.encoder.encode(headers)
        end = frames.END_STREAM if body is None else 0
        self.send(frames.frame(frames.HEADERS, frames.END_HEADERS | end, stream_id, block))
        if body is not None:
            self.send(frames.frame(frames.DATA, frames.END_STREAM, stream_id, body))
        return self.owners[stream_id]

    def look(self, seconds: float) -> None:
        """For so many more of them, at most a second apart."""
        before = asyncio.get_running_loop().time() + self.waited
        self.waited += seconds
        for second in range(1, int(seconds) + 1):
            self.protocol.look(before + second)
        if seconds % 1:
            self.protocol.look(before + seconds)

    def hold_up(self, seconds: float) -> None:
        """The server is stopped for so long."""
        self.waited += seconds
        self.protocol.forgive(seconds, asyncio.get_running_loop().time() + self.waited)

    async def received(self) -> list[Frame]:
        """Everything that came since the last time, once the loop's turn is over."""
        while self.transport.paused and not self.transport.closed:
            await asyncio.sleep(0)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        data = bytes(self.transport.written)
        self.transport.written.clear()
        return list(split(data))

    def open(self, stream_id: int, headers: Headers = REQUEST) -> Owner:
        """A request whose body is still to come."""
        block = self.encoder.encode(headers)
        self.send(frames.frame(frames.HEADERS, frames.END_HEADERS, stream_id, block))
        return self.owners[stream_id]

    async def goaway(self) -> tuple[ErrorCode, str]:
        """How the connection was ended, which is the last that came."""
        last = (await self.received())[-1]
        assert last.kind == frames.GOAWAY
        assert self.transport.ended
        return ErrorCode(int.from_bytes(last.payload[4:8], "big")), last.payload[8:].decode()

    async def answers(self) -> list[Frame]:
        """Frames that came for streams."""
        return [frame for frame in await self.received() if frame.stream_id]


def split(data: bytes) -> Iterator[Frame]:
    start = 0
    while start < len(data):
        high, low, kind, flags, stream_id = frames.HEAD.unpack_from(data, start)
        size = high << 8 | low
        payload = data[start + 9 : start + 9 + size]
        assert len(payload) == size
        yield Frame(kind, flags, stream_id, payload)
        start += 9 + size
