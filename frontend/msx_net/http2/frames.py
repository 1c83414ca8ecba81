"""Frames as bytes (RFC 9113 §4.1, §6)."""

from struct import Struct
from typing import Final

from msx_net.http2.errors import ConnectionFault, ErrorCode

PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

DATA: Final = 0x0
HEADERS: Final = 0x1
PRIORITY: Final = 0x2
RST_STREAM: Final = 0x3
SETTINGS: Final = 0x4
PUSH_PROMISE: Final = 0x5
PING: Final = 0x6
GOAWAY: Final = 0x7
WINDOW_UPDATE: Final = 0x8
CONTINUATION: Final = 0x9

ACK: Final = 0x1
END_STREAM: Final = 0x1
END_HEADERS: Final = 0x4
PADDED: Final = 0x8
HAS_PRIORITY: Final = 0x20

HEAD_SIZE: Final = 9
HEAD: Final = Struct(">HBBBI")
"""Head of every frame: length (16 bits, then 8), type, flags, stream."""

ID_MASK: Final = 0x7FFFFFFF
LARGEST_ID: Final = 0x7FFFFFFF


def head(size: int, kind: int, flags: int, stream_id: int) -> bytes:
    return HEAD.pack(size >> 8, size & 0xFF, kind, flags, stream_id)


def frame(kind: int, flags: int, stream_id: int, payload: bytes = b"") -> bytes:
    return head(len(payload), kind, flags, stream_id) + payload


def header_frames(stream_id: int, block: bytes, *, end: bool, max_size: int) -> bytes:
    """HEADERS, and CONTINUATION for what is more than one frame holds."""
    pieces = [block[start : start + max_size] for start in range(0, len(block), max_size)] or [b""]
    flags = END_STREAM if end else 0
    if len(pieces) == 1:
        return frame(HEADERS, flags | END_HEADERS, stream_id, block)
    middle = (frame(CONTINUATION, 0, stream_id, piece) for piece in pieces[1:-1])
    last = frame(CONTINUATION, END_HEADERS, stream_id, pieces[-1])
    return b"".join([frame(HEADERS, flags, stream_id, pieces[0]), *middle, last])


def rst_stream(stream_id: int, code: ErrorCode) -> bytes:
    return frame(RST_STREAM, 0, stream_id, code.to_bytes(4, "big"))


def window_update(stream_id: int, increment: int) -> bytes:
    return frame(WINDOW_UPDATE, 0, stream_id, increment.to_bytes(4, "big"))


def goaway(last_stream_id: int, code: ErrorCode, text: str = "") -> bytes:
    return frame(GOAWAY, 0, 0, last_stream_id.to_bytes(4, "big") + code.to_bytes(4, "big") + text.encode())


def without_padding(payload: bytes) -> bytes:
    """Payload of a frame with the flag PADDED, without its padding. Raises ConnectionFault."""
    if not payload:
        raise ConnectionFault(ErrorCode.FRAME_SIZE_ERROR, "A padded frame does not say how long its padding is.")
    padding = payload[0]
    if padding >= len(payload):
        raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "A frame's padding is longer than the frame.")
    return payload[1 : len(payload) - padding]


def header_fragment(flags: int, stream_id: int, payload: bytes) -> bytes:
    """Payload of HEADERS without padding and priority. Raises ConnectionFault."""
    if flags & PADDED:
        payload = without_padding(payload)
    if flags & HAS_PRIORITY:
        check_priority(stream_id, payload[:5])
        payload = payload[5:]
    return payload


def check_priority(stream_id: int, priority: bytes) -> None:
    """Raises ConnectionFault for what is not a priority; nothing else is done with it (RFC 9113 §5.3.2)."""
    if len(priority) != 5:
        raise ConnectionFault(ErrorCode.FRAME_SIZE_ERROR, "A priority has 5 bytes.")
    if int.from_bytes(priority[:4], "big") & ID_MASK == stream_id:
        raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, f"Stream {stream_id} depends on itself.")
