"""Limits of one peer on a connection."""

from dataclasses import dataclass, field
from typing import TypedDict

from msx_net.http2.header_blocks import encode_headers

DEFAULT_WINDOW = 65_535
"""Bytes: what a window begins with before SETTINGS (RFC 9113 §6.9.2)."""

LARGEST_WINDOW = (1 << 31) - 1

LARGEST_BODY = LARGEST_WINDOW >> 1
"""Bytes, 1 GiB: the longest body that `windows` lets in without a word from its owner."""


@dataclass(frozen=True)
class Limits:
    """Sizes in bytes, times in seconds. Raises ValueError for a window that HTTP/2 does not have.

    A connection holds at most `max_held` bytes of bodies that their owners have not consumed.
    """

    max_streams: int = 1_000
    stream_window: int = 1 << 20
    """The longest body that arrives without a word from its owner."""
    connection_window: int = 16 << 20
    max_held: int = 256 << 20
    max_frame_size: int = 1 << 14
    max_header_list: int = 16 << 10
    """As SETTINGS_MAX_HEADER_LIST_SIZE counts; a request with more is answered with `too_large`, and with twice as
    many the connection ends."""
    too_large: bytes = field(default_factory=lambda: encode_headers([(b":status", b"431")]))
    too_large_body: bytes = b""
    """The answer to a request with too many or too long headers."""
    head_timeout: float = 20.0
    """Until the client's preface and its SETTINGS are there; from the first byte of a header block to its end."""
    body_grace: float = 10.0
    """Seconds of reading a body, in which its rate does not count."""
    min_body_rate: int = 240
    """Bytes a second of a body, on average over the time in which its client was allowed to send; 0: any."""
    max_refused_body: int = 0
    """Bytes that are read and dropped of a request whose answer was complete before its body."""
    ping_interval: float = 60.0
    """Seconds without a frame, until the client is asked whether it is there."""
    ping_timeout: float = 20.0
    """Seconds for its answer."""
    idle_timeout: float | None = None
    """Seconds without a stream, until the connection ends with GOAWAY."""
    stall_timeout: float = 30.0
    """Seconds for which a client may take nothing of what waits for it."""
    max_age: float | None = None
    max_age_grace: float | None = None

    def __post_init__(self) -> None:
        for window in (self.stream_window, self.connection_window):
            if not DEFAULT_WINDOW <= window <= LARGEST_WINDOW:
                raise ValueError(f"a window of HTTP/2 has {DEFAULT_WINDOW} to {LARGEST_WINDOW} bytes, not {window}")
        if not 1 << 14 <= self.max_frame_size < 1 << 24:
            raise ValueError(f"a frame of HTTP/2 has at most 16384 to 16777215 bytes, not {self.max_frame_size}")


class Windows(TypedDict):
    """Some of the Limits."""

    stream_window: int
    connection_window: int
    max_held: int


def windows(largest: int) -> Windows:
    """Return windows for bodies of `largest` bytes whose owners consume nothing before they are whole.

    A window gives room back by halves: one of two of the largest bodies always has room for one.
    """
    window = min(max(Limits.stream_window, 2 * largest), LARGEST_WINDOW)
    return {
        "stream_window": window,
        "connection_window": max(Limits.connection_window, window),
        "max_held": max(Limits.max_held, 4 * window),
    }
