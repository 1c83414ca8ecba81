"""RFC 9113 §6.1 to §6.8, §6.10: what each kind of frame may have, and where it may stand."""

from __future__ import annotations

from msx_net.http2 import frames
from msx_net.http2.errors import ErrorCode
from msx_net.http2.frames import frame, goaway, rst_stream
from tests.conformance.http2.script import (
    END,
    GET,
    GET_BLOCK,
    INITIAL_WINDOW_SIZE,
    MAX_FRAME_SIZE,
    MORE_BLOCK,
    OPEN,
    PING,
    PONG,
    POST,
    PROTOCOL,
    WHOLE,
    Answered,
    Came,
    Case,
    Goaway,
    block,
    continuation,
    data,
    headers,
    priority,
    settings,
)

_SIZE = Goaway(ErrorCode.FRAME_SIZE_ERROR)
_TOO_LONG_PADDING = b"\x0atest"

DATA = [
    Case("6.1", "DATA of no stream", (data(0), PROTOCOL)),
    Case(
        "6.1", "DATA of a stream that is not open", (headers(1), Answered(1), data(1), Goaway(ErrorCode.STREAM_CLOSED))
    ),
    Case(
        "6.1",
        "DATA with padding as long as the frame",
        (headers(1, POST, OPEN) + data(1, _TOO_LONG_PADDING, END | frames.PADDED), PROTOCOL),
    ),
]

HEADERS = [
    Case("6.2", "HEADERS without END_HEADERS, and PRIORITY", (headers(1, GET, END) + priority(1), PROTOCOL)),
    Case("6.2", "HEADERS without END_HEADERS, and HEADERS of another", (headers(1, GET, END) + headers(3), PROTOCOL)),
    Case("6.2", "HEADERS of no stream", (headers(0), PROTOCOL)),
    Case(
        "6.2",
        "HEADERS with padding longer than the frame",
        (block(1, bytes([len(GET_BLOCK) + 2]) + GET_BLOCK, WHOLE | frames.PADDED), PROTOCOL),
    ),
]

PRIORITY = [
    Case("6.3", "PRIORITY of no stream", (priority(0), PROTOCOL)),
    Case("6.3", "PRIORITY of a wrong length", (headers(1, POST, OPEN) + frame(frames.PRIORITY, 0, 1, bytes(4)), _SIZE)),
]

RST_STREAM = [
    Case("6.4", "RST_STREAM of no stream", (rst_stream(0, ErrorCode.CANCEL), PROTOCOL)),
    Case("6.4", "RST_STREAM of an idle stream", (rst_stream(1, ErrorCode.CANCEL), PROTOCOL)),
    Case(
        "6.4",
        "RST_STREAM of a wrong length",
        (headers(1, POST, OPEN) + frame(frames.RST_STREAM, 0, 1, bytes(3)), _SIZE),
    ),
]

SETTINGS = [
    Case("6.5", "SETTINGS with ACK and a payload", (frame(frames.SETTINGS, frames.ACK, 0, bytes(1)), _SIZE)),
    Case("6.5", "SETTINGS of a stream", (frame(frames.SETTINGS, 0, 1, settings((3, 100))[9:]), PROTOCOL)),
    Case("6.5", "SETTINGS of a wrong length", (frame(frames.SETTINGS, 0, 0, bytes(3)), _SIZE)),
    Case("6.5.2", "SETTINGS_ENABLE_PUSH: neither 0 nor 1", (settings((2, 2)), PROTOCOL)),
    Case(
        "6.5.2",
        "SETTINGS_INITIAL_WINDOW_SIZE: too large",
        (settings((INITIAL_WINDOW_SIZE, 1 << 31)), Goaway(ErrorCode.FLOW_CONTROL_ERROR)),
    ),
    Case("6.5.2", "SETTINGS_MAX_FRAME_SIZE: too small", (settings((MAX_FRAME_SIZE, (1 << 14) - 1)), PROTOCOL)),
    Case("6.5.2", "SETTINGS_MAX_FRAME_SIZE: too large", (settings((MAX_FRAME_SIZE, 1 << 24)), PROTOCOL)),
    Case("6.5.2", "an unknown setting", (settings((0xFF, 1)), Came(frames.SETTINGS, frames.ACK))),
    Case("6.5.3", "SETTINGS is acknowledged", (settings((3, 100)), Came(frames.SETTINGS, frames.ACK, b""))),
]

PINGS = [
    Case("6.7", "PING is answered with its payload", (PING, PONG)),
    Case(
        "6.7",
        "PING with ACK is not answered",
        (frame(frames.PING, frames.ACK, 0, b"invalid.") + PING, PONG),
    ),
    Case("6.7", "PING of a stream", (frame(frames.PING, 0, 1, bytes(8)), PROTOCOL)),
    Case("6.7", "PING of a wrong length", (frame(frames.PING, 0, 0, bytes(6)), _SIZE)),
]

GOAWAYS = [
    Case("6.8", "GOAWAY of a stream", (frame(frames.GOAWAY, 0, 1, bytes(8)), PROTOCOL)),
    Case("6.8", "requests behind the client's GOAWAY", (goaway(0, ErrorCode.NO_ERROR) + headers(1), Answered(1))),
]

CONTINUATIONS = [
    Case(
        "6.10",
        "several CONTINUATION",
        (headers(1, GET, END) + continuation(1, MORE_BLOCK, 0) + continuation(1, MORE_BLOCK), Answered(1)),
    ),
    Case(
        "6.10",
        "CONTINUATION, and a frame that is none",
        (headers(1, GET, END) + continuation(1, MORE_BLOCK, 0) + data(1), PROTOCOL),
    ),
    Case("6.10", "CONTINUATION of no stream", (headers(1, GET, END) + continuation(0, MORE_BLOCK), PROTOCOL)),
    Case("6.10", "CONTINUATION of another stream", (headers(1, GET, END) + continuation(3, MORE_BLOCK), PROTOCOL)),
    Case(
        "6.10",
        "CONTINUATION behind HEADERS that are complete",
        (headers(1, POST, OPEN) + continuation(1, MORE_BLOCK), PROTOCOL),
    ),
    Case(
        "6.10",
        "CONTINUATION behind CONTINUATION that was the last",
        (headers(1, POST, 0) + continuation(1, MORE_BLOCK) + continuation(1, MORE_BLOCK), PROTOCOL),
    ),
    Case(
        "6.10",
        "CONTINUATION behind DATA",
        (headers(1, POST, OPEN) + data(1, b"test", 0) + continuation(1, MORE_BLOCK), PROTOCOL),
    ),
]

CASES = [*DATA, *HEADERS, *PRIORITY, *RST_STREAM, *SETTINGS, *PINGS, *GOAWAYS, *CONTINUATIONS]
