"""RFC 9113 §5.1 to §5.3: the states of streams, their numbers, how many there may be; what is left of priorities."""

from __future__ import annotations

from msx_net.http2 import frames
from msx_net.http2.errors import ErrorCode
from msx_net.http2.frames import window_update
from tests.conformance.http2.script import (
    CANCEL,
    GET_BLOCK,
    MAX_CONCURRENT_STREAMS,
    NO_WINDOW,
    OPEN,
    POST,
    PROTOCOL,
    WHOLE,
    Answered,
    Case,
    Goaway,
    Received,
    Reset,
    block,
    continuation,
    data,
    headers,
    priority,
    priority_fields,
)

_STREAM_CLOSED = Goaway(ErrorCode.STREAM_CLOSED)

IDLE = [
    Case("5.1", "idle: DATA", (data(1), PROTOCOL)),
    Case("5.1", "idle: RST_STREAM", (CANCEL, PROTOCOL)),
    Case("5.1", "idle: WINDOW_UPDATE", (window_update(1, 100), PROTOCOL)),
    Case("5.1", "idle: CONTINUATION", (continuation(1, GET_BLOCK), PROTOCOL)),
]

HALF_CLOSED = [
    Case("5.1", "half closed (remote): DATA", (NO_WINDOW + headers(1) + data(1), _STREAM_CLOSED)),
    Case("5.1", "half closed (remote): HEADERS", (NO_WINDOW + headers(1) + headers(1), _STREAM_CLOSED)),
    Case("5.1", "half closed (remote): CONTINUATION", (NO_WINDOW + headers(1) + continuation(1, GET_BLOCK), PROTOCOL)),
]

CLOSED = [
    Case("5.1", "closed by RST_STREAM: DATA", (headers(1, POST, OPEN) + CANCEL + data(1), _STREAM_CLOSED)),
    Case("5.1", "closed by RST_STREAM: HEADERS", (headers(1, POST, OPEN) + CANCEL + headers(1), _STREAM_CLOSED)),
    Case(
        "5.1",
        "closed by RST_STREAM: CONTINUATION",
        (headers(1, POST, OPEN) + CANCEL + continuation(1, GET_BLOCK), PROTOCOL),
    ),
    Case("5.1", "closed: DATA", (headers(1), Answered(1), data(1), _STREAM_CLOSED)),
    Case("5.1", "closed: HEADERS", (headers(1), Answered(1), headers(1), _STREAM_CLOSED)),
    Case("5.1", "closed: CONTINUATION", (headers(1), Answered(1), continuation(1, GET_BLOCK), PROTOCOL)),
]

NUMBERS = [
    Case("5.1.1", "an even number", (headers(2), PROTOCOL)),
    Case("5.1.1", "a number that was skipped", (headers(5) + headers(3), PROTOCOL)),
    Case("5.1.1", "a number that is in use", (NO_WINDOW + headers(5) + headers(5), _STREAM_CLOSED)),
]


def _one_too_many(server: Received) -> bytes:
    streams = server.settings[MAX_CONCURRENT_STREAMS] + 1
    return NO_WINDOW + b"".join(headers(2 * number + 1) for number in range(streams))


CONCURRENCY = [Case("5.1.2", "more streams than announced", (_one_too_many, Reset(None, ErrorCode.REFUSED_STREAM)))]

DEPENDENCIES = [
    Case(
        "5.3.1",
        "HEADERS of a stream that depends on itself",
        (block(1, priority_fields(1) + GET_BLOCK, WHOLE | frames.HAS_PRIORITY), PROTOCOL),
    ),
    Case("5.3.1", "PRIORITY of a stream that depends on itself", (priority(2, depends_on=2), PROTOCOL)),
]

CASES = [*IDLE, *HALF_CLOSED, *CLOSED, *NUMBERS, *CONCURRENCY, *DEPENDENCIES]
