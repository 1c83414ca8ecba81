"""RFC 9113 §6.5.3 and §6.9: windows of streams and of the connection."""

from __future__ import annotations

from msx_net.http2 import frames
from msx_net.http2.errors import ErrorCode
from msx_net.http2.frames import frame, window_update
from tests.conformance.http2.script import (
    INITIAL_WINDOW_SIZE,
    OPEN,
    POST,
    Answered,
    Case,
    Goaway,
    Piece,
    Reset,
    headers,
    settings,
)

LARGEST = (1 << 31) - 1


def _window(size: int) -> bytes:
    return settings((INITIAL_WINDOW_SIZE, size))


WINDOW_UPDATES = [
    Case("6.9", "the connection's window by 0", (window_update(0, 0), Goaway(ErrorCode.PROTOCOL_ERROR))),
    Case(
        "6.9",
        "a stream's window by 0",
        (headers(1, POST, OPEN) + window_update(1, 0), Reset(1, ErrorCode.PROTOCOL_ERROR)),
    ),
    Case(
        "6.9",
        "a stream's window by 0, when its answer was complete",
        (headers(1), Answered(1), window_update(1, 0), Reset(1, ErrorCode.PROTOCOL_ERROR)),
    ),
    Case("6.9", "a wrong length", (frame(frames.WINDOW_UPDATE, 0, 0, bytes(3)), Goaway(ErrorCode.FRAME_SIZE_ERROR))),
]

LIMITS = [
    Case("6.9.1", "a window of one byte", (_window(1) + headers(1), Piece(1))),
    Case(
        "6.9.1",
        "the connection's window becomes too large",
        (window_update(0, LARGEST) + window_update(0, LARGEST), Goaway(ErrorCode.FLOW_CONTROL_ERROR)),
    ),
    Case(
        "6.9.1",
        "a stream's window becomes too large",
        (
            headers(1, POST, OPEN) + window_update(1, LARGEST) + window_update(1, LARGEST),
            Reset(1, ErrorCode.FLOW_CONTROL_ERROR),
        ),
    ),
]

INITIAL = [
    Case("6.5.3", "the last value of a setting counts", (settings((4, 100), (4, 1)) + headers(1), Piece(1))),
    Case("6.9.2", "a window that opens while an answer waits", (_window(0) + headers(1) + _window(1), Piece(1))),
    Case(
        "6.9.2",
        "a window that becomes negative",
        (_window(3) + headers(1), Piece(3), _window(2), window_update(1, 2), Piece(1)),
    ),
    Case("6.9.2", "too large", (_window(1 << 31), Goaway(ErrorCode.FLOW_CONTROL_ERROR))),
    Case(
        "6.9.2",
        "SETTINGS make a stream's window too large",
        (
            _window(0) + headers(1, POST, OPEN) + window_update(1, LARGEST) + _window(1),
            Goaway(ErrorCode.FLOW_CONTROL_ERROR),
        ),
    ),
]

CASES = [*WINDOW_UPDATES, *LIMITS, *INITIAL]
