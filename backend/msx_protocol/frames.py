"""Frames: messages and bodies as bytes of a stream socket."""

import struct
from collections.abc import Iterable

import msgspec

from msx_protocol.message import WireMessage

PREFIX = struct.Struct("<II")
MAX_HEAD = 64 << 20
"""Bytes; a larger head can only be a broken stream."""
MAX_BODY = 0xFFFFFFFF

_encode = msgspec.msgpack.Encoder().encode


class ProtocolError(Exception):
    """The peer sent bytes that are not a frame of this protocol; the connection cannot be used any more."""


def encode_frame(message: WireMessage, body: bytes | bytearray = b"") -> bytes:
    head = _encode(message)
    return _prefix(len(head), len(body)) + head + body


def encode_frame_parts(message: WireMessage, bodies: Iterable[bytes | bytearray]) -> list[bytes | bytearray]:
    """The frame as a list of buffers for a gathering write, so that large bodies are not copied."""
    head = _encode(message)
    parts = list(bodies)
    return [_prefix(len(head), sum(map(len, parts))) + head, *parts]


def _prefix(head: int, body: int) -> bytes:
    if head > MAX_HEAD or body > MAX_BODY:
        raise ProtocolError(f"a frame of {head} + {body} bytes is too large: at most {MAX_HEAD} + {MAX_BODY} fit")
    return PREFIX.pack(head, body)
