"""Steps of a case: bytes to send, and what has to come back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from struct import Struct
from typing import Protocol

from msx_net.http2 import frames
from msx_net.http2.errors import ErrorCode
from msx_net.http2.header_blocks import encode_headers
from msx_net.http2.headers import Headers
from tests.net.http2.peer import Frame

END = frames.END_STREAM
WHOLE = frames.END_HEADERS | frames.END_STREAM
OPEN = frames.END_HEADERS

MAX_CONCURRENT_STREAMS, INITIAL_WINDOW_SIZE, MAX_FRAME_SIZE = 0x3, 0x4, 0x5

PATH = b"/ping"
"""A target answers GET and POST of it with 200 and some bytes, when the request is complete."""

GET: Headers = [(b":method", b"GET"), (b":scheme", b"http"), (b":path", PATH), (b":authority", b"localhost")]
POST: Headers = [(b":method", b"POST"), *GET[1:]]

GET_BLOCK, MORE_BLOCK = encode_headers(GET), encode_headers([(b"x-more", b"1")])
"""The header block of a request, and one that adds a header to it, or trailers."""

CANCEL = frames.rst_stream(1, ErrorCode.CANCEL)

_ENTRY = Struct(">HI")


class Received(Protocol):
    """Frames that a client has received from the server."""

    @property
    def settings(self) -> Mapping[int, int]: ...


Step = bytes | Callable[[Received], bytes]


class Expected(Protocol):
    """Frame that has to come back before the script goes on."""

    alive: bool
    """The connection has to answer PING afterwards; else it has to end."""

    def check(self, frame: Frame) -> bool:
        """This is it; else more is read. Raises AssertionError for what must not come."""


@dataclass(frozen=True)
class Case:
    """One rule. `silent`: the script says the preface itself."""

    section: str
    name: str
    steps: tuple[Step | Expected, ...]
    silent: bool = False

    @property
    def id(self) -> str:
        return f"{self.section}: {self.name}"


# -- what is expected --


@dataclass(frozen=True)
class Goaway:
    """With this code; `last` is the stream that it names."""

    code: ErrorCode
    last: int | None = None
    alive = False

    def check(self, frame: Frame) -> bool:
        if frame.kind != frames.GOAWAY:
            return False
        assert ErrorCode(int.from_bytes(frame.payload[4:8], "big")) == self.code, frame.payload[8:]
        assert self.last in (None, frame.number)
        return True


PROTOCOL = Goaway(ErrorCode.PROTOCOL_ERROR)


@dataclass(frozen=True)
class Closed:
    """Without a word."""

    alive = False

    def check(self, frame: Frame) -> bool:
        return False


@dataclass(frozen=True)
class Reset:
    """RST_STREAM; None is any stream."""

    stream_id: int | None
    code: ErrorCode
    alive = True

    def check(self, frame: Frame) -> bool:
        assert frame.kind != frames.GOAWAY, frame
        if frame.kind != frames.RST_STREAM or self.stream_id not in (None, frame.stream_id):
            return False
        assert frame.number == self.code
        return True


@dataclass(frozen=True)
class Answered:
    """To its end."""

    stream_id: int
    alive = True

    def check(self, frame: Frame) -> bool:
        assert frame.kind not in (frames.GOAWAY, frames.RST_STREAM), frame
        ended = frame.kind in (frames.HEADERS, frames.DATA) and bool(frame.flags & END)
        return ended and frame.stream_id == self.stream_id


@dataclass(frozen=True)
class Piece:
    """One DATA frame, as large as the window was."""

    size: int
    alive = True

    def check(self, frame: Frame) -> bool:
        assert frame.kind not in (frames.GOAWAY, frames.RST_STREAM), frame
        if frame.kind != frames.DATA:
            return False
        assert len(frame.payload) == self.size
        return True


@dataclass(frozen=True)
class Came:
    """A frame of this kind, with these flags and this payload."""

    kind: int
    flags: int = 0
    payload: bytes | None = None
    alive = True

    def check(self, frame: Frame) -> bool:
        assert frame.kind != frames.GOAWAY, frame
        return (frame.kind, frame.flags) == (self.kind, self.flags) and self.payload in (None, frame.payload)


PING = frames.frame(frames.PING, 0, 0, b"8 bytes.")
PONG = Came(frames.PING, frames.ACK, b"8 bytes.")


# -- what is sent --


def headers(stream_id: int, fields: Headers = GET, flags: int = WHOLE) -> bytes:
    return frames.frame(frames.HEADERS, flags, stream_id, encode_headers(fields))


def block(stream_id: int, raw: bytes, flags: int = WHOLE) -> bytes:
    """HEADERS with any bytes."""
    return frames.frame(frames.HEADERS, flags, stream_id, raw)


def continuation(stream_id: int, raw: bytes, flags: int = frames.END_HEADERS) -> bytes:
    return frames.frame(frames.CONTINUATION, flags, stream_id, raw)


def data(stream_id: int, payload: bytes = b"test", flags: int = END) -> bytes:
    return frames.frame(frames.DATA, flags, stream_id, payload)


def settings(*entries: tuple[int, int]) -> bytes:
    return frames.frame(frames.SETTINGS, 0, 0, b"".join(_ENTRY.pack(*entry) for entry in entries))


NO_WINDOW = settings((INITIAL_WINDOW_SIZE, 0))
"""The answer cannot end."""


def settings_of(payload: bytes) -> Iterable[tuple[int, int]]:
    return _ENTRY.iter_unpack(payload)


def priority(stream_id: int, depends_on: int = 0, weight: int = 255, *, exclusive: bool = False) -> bytes:
    return frames.frame(frames.PRIORITY, 0, stream_id, priority_fields(depends_on, weight, exclusive=exclusive))


def priority_fields(depends_on: int = 0, weight: int = 255, *, exclusive: bool = False) -> bytes:
    return (depends_on | exclusive << 31).to_bytes(4, "big") + bytes([weight])


def larger_than_allowed(kind: int, flags: int, stream_id: int) -> Step:
    """A frame with one byte more than the server's SETTINGS_MAX_FRAME_SIZE."""
    return lambda server: frames.frame(kind, flags, stream_id, bytes(server.settings[MAX_FRAME_SIZE] + 1))
