"""RFC 9113 §7 and §8: codes of errors, and what is a request."""

from __future__ import annotations

from msx_net.http2 import frames
from msx_net.http2.errors import ErrorCode
from msx_net.http2.frames import frame
from msx_net.http2.headers import Headers
from tests.conformance.http2.script import (
    END,
    GET,
    OPEN,
    PING,
    PONG,
    POST,
    Case,
    Expected,
    Goaway,
    Reset,
    Step,
    data,
    headers,
)

_MALFORMED = Reset(1, ErrorCode.PROTOCOL_ERROR)
_METHOD, _SCHEME, _PATH, _AUTHORITY = GET
_UNKNOWN_CODE = (0xFF).to_bytes(4, "big")

CODES = [
    Case("7", "GOAWAY with an unknown code", (frame(frames.GOAWAY, 0, 0, bytes(4) + _UNKNOWN_CODE) + PING, PONG)),
    Case(
        "7",
        "RST_STREAM with an unknown code",
        (headers(1, POST, OPEN) + frame(frames.RST_STREAM, 0, 1, _UNKNOWN_CODE) + PING, PONG),
    ),
]

EXCHANGE = [
    Case("8.1", "a second HEADERS without END_STREAM", (headers(1, POST, OPEN) + headers(1, POST, OPEN), _MALFORMED)),
]


def _refused(section: str, name: str, fields: Headers) -> Case:
    return Case(section, name, (headers(1, fields), _MALFORMED))


FIELDS = [
    _refused("8.1.2", "a name in upper case", [*GET, (b"X-TEST", b"ok")]),
    _refused("8.1.2.1", "an unknown pseudo-header", [*GET, (b":test", b"ok")]),
    _refused("8.1.2.1", "a pseudo-header of responses", [*GET, (b":status", b"200")]),
    Case(
        "8.1.2.1",
        "a pseudo-header in trailers",
        (headers(1, POST, OPEN) + data(1, b"test", 0) + headers(1, [_METHOD]), _MALFORMED),
    ),
    _refused("8.1.2.1", "a pseudo-header behind a header", [_METHOD, _SCHEME, _PATH, (b"x-test", b"ok"), _AUTHORITY]),
    _refused("8.1.2.2", "a header of the connection", [*GET, (b"connection", b"keep-alive")]),
    _refused("8.1.2.2", "TE that is not trailers", [*GET, (b"te", b"trailers, deflate;q=0.5")]),
    _refused("8.1.2.3", "an empty :path", [_METHOD, _SCHEME, (b":path", b""), _AUTHORITY]),
    _refused("8.1.2.3", "no :method", [_SCHEME, _PATH, _AUTHORITY]),
    _refused("8.1.2.3", "no :scheme", [_METHOD, _PATH, _AUTHORITY]),
    _refused("8.1.2.3", "no :path", [_METHOD, _SCHEME, _AUTHORITY]),
    _refused("8.1.2.3", "two :method", [_METHOD, *GET]),
    _refused("8.1.2.3", "two :scheme", [_SCHEME, *GET]),
    _refused("8.1.2.3", "two :path", [_PATH, *GET]),
]


def _with_length(*sent: Step | Expected) -> tuple[Step | Expected, ...]:
    return (headers(1, [*POST, (b"content-length", b"1")], OPEN), *sent, _MALFORMED)


LENGTHS = [
    Case("8.1.2.6", "content-length that differs from DATA", _with_length(data(1, b"test"))),
    Case("8.1.2.6", "content-length that differs from several DATA", _with_length(data(1, b"t", 0), data(1, b"est"))),
    Case("8.1.2.6", "content-length without DATA", _with_length(data(1, b""))),
    Case("8.1.2.6", "content-length and trailers", _with_length(headers(1, [(b"x-test", b"ok")]))),
    _refused("8.1.2.6", "content-length of a request that ended", [*POST, (b"content-length", b"1")]),
]


def _unsent(section: str, name: str, length: bytes) -> Case:
    """The request is refused before its body."""
    return Case(section, name, (headers(1, [*POST, (b"content-length", length)], OPEN), _MALFORMED))


NOT_IN_THE_TABLE_OF_2015 = [
    _refused("9113 8.2.1", "a name with a blank", [*GET, (b"x test", b"ok")]),
    _refused("9113 8.2.1", "a value with a line feed", [*GET, (b"x-test", b"o\nk")]),
    _refused("9113 8.2.1", "a value that begins with a blank", [*GET, (b"x-test", b" ok")]),
    _unsent("9113 8.1.1", "content-length that is not a number", b"+4"),
    _unsent("9113 8.1.1", "content-length that is a list", b"4, 4"),
    _refused("9113 8.3.1", ":path without a slash", [_METHOD, _SCHEME, (b":path", b"ping"), _AUTHORITY]),
    _refused("9113 8.3.1", "* for another method than OPTIONS", [_METHOD, _SCHEME, (b":path", b"*"), _AUTHORITY]),
    _refused("9113 8.3.1", "host that differs from :authority", [*GET, (b"host", b"elsewhere")]),
]
"""Rules that RFC 9113 states more clearly than RFC 7540."""

PUSH = [
    Case(
        "8.2",
        "PUSH_PROMISE",
        (headers(1, POST, OPEN) + frame(frames.PUSH_PROMISE, END, 1, bytes(4)), Goaway(ErrorCode.PROTOCOL_ERROR)),
    ),
]

CASES = [*CODES, *EXCHANGE, *FIELDS, *LENGTHS, *NOT_IN_THE_TABLE_OF_2015, *PUSH]
