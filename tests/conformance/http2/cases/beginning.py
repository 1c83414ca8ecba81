"""RFC 9113 §3.4 (RFC 7540 §3.5), §4, §5.4.1, §5.5: the preface, the form of frames, faults, extensions."""

from __future__ import annotations

from msx_net.http2 import frames
from msx_net.http2.errors import ErrorCode
from msx_net.http2.frames import frame
from msx_net.http2.header_blocks import encode_headers
from tests.conformance.http2.script import (
    END,
    GET,
    OPEN,
    PING,
    PONG,
    POST,
    WHOLE,
    Answered,
    Came,
    Case,
    Closed,
    Goaway,
    block,
    data,
    headers,
    larger_than_allowed,
    priority,
    settings,
)

_UNKNOWN = 0x16
_RESERVED_BIT = 1 << 31

BEGINNING = [
    Case(
        "3.5",
        "the server's first frame is SETTINGS",
        (frames.PREFACE + settings(), Came(frames.SETTINGS)),
        silent=True,
    ),
    Case("3.5", "an invalid preface", (b"INVALID CONNECTION PREFACE\r\n\r\n", Closed()), silent=True),
]

FRAME_FORMAT = [
    Case("4.1", "a frame of an unknown type", (frame(_UNKNOWN, 0, 0, bytes(8)) + PING, PONG)),
    Case("4.1", "flags that are not defined", (frame(frames.PING, 0x16, 0, b"8 bytes."), PONG)),
    Case("4.1", "the reserved bit of the stream", (frame(frames.PING, 0, _RESERVED_BIT, b"8 bytes."), PONG)),
    Case("4.2", "DATA of 2^14 bytes", (headers(1, POST, OPEN) + data(1, bytes(1 << 14)), Answered(1))),
    Case(
        "4.2",
        "DATA longer than SETTINGS_MAX_FRAME_SIZE",
        (headers(1, POST, OPEN), larger_than_allowed(frames.DATA, END, 1), Goaway(ErrorCode.FRAME_SIZE_ERROR)),
    ),
    Case(
        "4.2",
        "HEADERS longer than SETTINGS_MAX_FRAME_SIZE",
        (larger_than_allowed(frames.HEADERS, WHOLE, 1), Goaway(ErrorCode.FRAME_SIZE_ERROR)),
    ),
    Case(
        "4.3",
        "a header block that cannot be decoded",
        (block(1, b"\x40\x01\x61"), Goaway(ErrorCode.COMPRESSION_ERROR)),
    ),
    Case(
        "4.3",
        "PRIORITY in a header block",
        (headers(1, GET, 0) + priority(1), Goaway(ErrorCode.PROTOCOL_ERROR)),
    ),
    Case(
        "4.3",
        "HEADERS of another stream in a header block",
        (headers(1, GET, 0) + headers(3), Goaway(ErrorCode.PROTOCOL_ERROR)),
    ),
]

FAULTS = [
    Case("5.4.1", "PING of a wrong length", (frame(frames.PING, 0, 0, bytes(6)), Goaway(ErrorCode.FRAME_SIZE_ERROR))),
    Case(
        "5.4.1",
        "the last stream that was begun is named",
        (
            headers(1) + headers(3),
            Answered(3),
            frame(frames.PING, 0, 1, bytes(8)),
            Goaway(ErrorCode.PROTOCOL_ERROR, last=3),
        ),
    ),
]

EXTENSIONS = [
    Case("5.5", "a frame of an unknown type on a stream", (frame(_UNKNOWN, 0, 1, bytes(8)) + PING, PONG)),
    Case(
        "5.5",
        "a frame of an unknown type in a header block",
        (
            block(1, encode_headers(GET), END) + frame(_UNKNOWN, 0, 1, bytes(8)),
            Goaway(ErrorCode.PROTOCOL_ERROR),
        ),
    ),
]

CASES = [*BEGINNING, *FRAME_FORMAT, *FAULTS, *EXTENSIONS]
