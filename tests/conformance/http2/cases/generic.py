"""h2spec's group `generic`: what a server has to accept."""

from __future__ import annotations

from msx_net.http2 import frames
from msx_net.http2.errors import ErrorCode
from msx_net.http2.frames import frame, goaway, window_update
from tests.conformance.http2.script import (
    CANCEL,
    END,
    GET,
    GET_BLOCK,
    MORE_BLOCK,
    NO_WINDOW,
    OPEN,
    PING,
    PONG,
    POST,
    WHOLE,
    Answered,
    Came,
    Case,
    Piece,
    block,
    continuation,
    data,
    headers,
    priority,
    priority_fields,
    settings,
)

BEGINNING = [
    Case("generic 1", "the preface", (frames.PREFACE + settings(), Came(frames.SETTINGS, frames.ACK)), silent=True),
]

STATES = [
    Case("generic 2", "PRIORITY on an idle stream", (priority(1) + PING, PONG)),
    Case(
        "generic 2",
        "WINDOW_UPDATE on a stream that is half closed (remote)",
        (NO_WINDOW + headers(1) + window_update(1, 1), Piece(1)),
    ),
    Case(
        "generic 2",
        "PRIORITY on a stream that is half closed (remote)",
        (NO_WINDOW + headers(1) + priority(1) + window_update(1, 1), Piece(1)),
    ),
    Case("generic 2", "RST_STREAM on a stream that is half closed (remote)", (headers(1) + CANCEL + PING, PONG)),
    Case("generic 2", "PRIORITY on a closed stream", (headers(1), Answered(1), priority(1), PING, PONG)),
]

FRAMES = [
    Case("generic 3.1", "DATA", (headers(1, POST, OPEN) + data(1), Answered(1))),
    Case("generic 3.1", "several DATA", (headers(1, POST, OPEN) + data(1, b"te", 0) + data(1, b"st"), Answered(1))),
    Case(
        "generic 3.1",
        "DATA with padding",
        (headers(1, POST, OPEN) + data(1, b"\x06test" + bytes(6), END | frames.PADDED), Answered(1)),
    ),
    Case("generic 3.2", "HEADERS", (headers(1), Answered(1))),
    Case(
        "generic 3.2",
        "HEADERS with padding",
        (block(1, b"\x06" + GET_BLOCK + bytes(6), WHOLE | frames.PADDED), Answered(1)),
    ),
    Case(
        "generic 3.2",
        "HEADERS with a priority",
        (block(1, priority_fields() + GET_BLOCK, WHOLE | frames.HAS_PRIORITY), Answered(1)),
    ),
    Case(
        "generic 3.2",
        "HEADERS with padding and a priority",
        (
            block(1, b"\x06" + priority_fields() + GET_BLOCK + bytes(6), WHOLE | frames.PADDED | frames.HAS_PRIORITY),
            Answered(1),
        ),
    ),
    Case("generic 3.3", "PRIORITY 1", (priority(1, weight=0) + headers(1), Answered(1))),
    Case("generic 3.3", "PRIORITY 256", (priority(1, weight=255) + headers(1), Answered(1))),
    Case("generic 3.3", "PRIORITY with a dependency", (priority(1) + priority(3, 1) + headers(1), Answered(1))),
    Case(
        "generic 3.3",
        "PRIORITY with an exclusive dependency",
        (priority(3) + priority(1, 3, exclusive=True) + headers(1), Answered(1)),
    ),
    Case(
        "generic 3.3",
        "PRIORITY for an idle stream, and HEADERS of a lower one",
        (priority(5) + headers(3), Answered(3)),
    ),
    Case("generic 3.4", "RST_STREAM", (headers(1, POST, OPEN) + CANCEL + PING, PONG)),
    Case("generic 3.5", "SETTINGS", (settings((3, 100)), Came(frames.SETTINGS, frames.ACK, b""))),
    Case("generic 3.7", "PING", (PING, PONG)),
    Case("generic 3.8", "GOAWAY", (goaway(0, ErrorCode.NO_ERROR) + PING, PONG)),
    Case("generic 3.9", "WINDOW_UPDATE of the connection", (window_update(0, 1) + PING, PONG)),
    Case(
        "generic 3.9",
        "WINDOW_UPDATE of a stream",
        (headers(1, POST, OPEN) + window_update(1, 1) + data(1), Answered(1)),
    ),
    Case("generic 3.10", "CONTINUATION", (headers(1, GET, END) + continuation(1, MORE_BLOCK), Answered(1))),
    Case(
        "generic 3.10",
        "several CONTINUATION",
        (headers(1, GET, END) + continuation(1, MORE_BLOCK, 0) + continuation(1, MORE_BLOCK), Answered(1)),
    ),
]

EXCHANGES = [
    Case("generic 4", "GET", (headers(1), Answered(1))),
    Case("generic 4", "HEAD", (headers(1, [(b":method", b"HEAD"), *GET[1:]]), Answered(1))),
    Case("generic 4", "POST", (headers(1, POST, OPEN) + data(1), Answered(1))),
    Case(
        "generic 4",
        "POST with trailers",
        (
            headers(1, [*POST, (b"trailer", b"x-test")], OPEN) + data(1, b"test", 0) + headers(1, [(b"x-test", b"ok")]),
            Answered(1),
        ),
    ),
    Case(
        "generic 4",
        "DATA that ends behind padding alone",
        (headers(1, POST, OPEN) + data(1, b"test", 0) + frame(frames.DATA, END | frames.PADDED, 1, b"\0"), Answered(1)),
    ),
]

CASES = [*BEGINNING, *STATES, *FRAMES, *EXCHANGES]
