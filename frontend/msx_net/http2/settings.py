"""SETTINGS of both sides (RFC 9113 §6.5)."""

from struct import Struct

from msx_net.http2.errors import ConnectionFault, ErrorCode
from msx_net.http2.frames import SETTINGS, frame
from msx_net.http2.limits import LARGEST_WINDOW, Limits

HEADER_TABLE_SIZE = 0x1
ENABLE_PUSH = 0x2
MAX_CONCURRENT_STREAMS = 0x3
INITIAL_WINDOW_SIZE = 0x4
MAX_FRAME_SIZE = 0x5
MAX_HEADER_LIST_SIZE = 0x6

MOST = 32
"""Entries of one frame: there are six, and more to come."""

_ENTRY = Struct(">HI")


def settings_frame(limits: Limits) -> bytes:
    entries = [
        (MAX_CONCURRENT_STREAMS, limits.max_streams),
        (INITIAL_WINDOW_SIZE, limits.stream_window),
        (MAX_FRAME_SIZE, limits.max_frame_size),
        (MAX_HEADER_LIST_SIZE, limits.max_header_list),
    ]
    return frame(SETTINGS, 0, 0, b"".join(_ENTRY.pack(*entry) for entry in entries))


def parse_settings(payload: bytes) -> dict[int, int]:
    """The last value of each. Raises ConnectionFault."""
    if len(payload) % _ENTRY.size:
        raise ConnectionFault(ErrorCode.FRAME_SIZE_ERROR, "The length of SETTINGS is not a multiple of 6 bytes.")
    if len(payload) > MOST * _ENTRY.size:
        raise ConnectionFault(ErrorCode.ENHANCE_YOUR_CALM, f"SETTINGS has at most {MOST} entries: send fewer.")
    entries: dict[int, int] = {}
    for name, value in _ENTRY.iter_unpack(payload):
        _check(name, value)
        entries[name] = value
    return entries


def _check(name: int, value: int) -> None:
    if name == ENABLE_PUSH and value > 1:
        raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, f"SETTINGS_ENABLE_PUSH is 0 or 1, not {value}.")
    if name == INITIAL_WINDOW_SIZE and value > LARGEST_WINDOW:
        raise ConnectionFault(
            ErrorCode.FLOW_CONTROL_ERROR, f"SETTINGS_INITIAL_WINDOW_SIZE is at most {LARGEST_WINDOW}, not {value}."
        )
    if name == MAX_FRAME_SIZE and not 1 << 14 <= value < 1 << 24:
        raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, f"SETTINGS_MAX_FRAME_SIZE is 16384 to 16777215, not {value}.")
