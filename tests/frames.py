"""The wire protocol's reader, for bytes that a test has in hand."""

from __future__ import annotations

from typing import TypeVar

from msx_protocol import FrameReader

T = TypeVar("T")


def fed(reader: FrameReader[T], data: bytes | bytearray | memoryview) -> list[tuple[T, bytes]]:
    """The messages that are complete with these bytes, each with its body."""
    frames: list[tuple[T, bytearray]] = []
    left = memoryview(data)
    while left:
        with memoryview(reader.space()) as space:
            count = min(len(space), len(left))
            space[:count] = left[:count]
        frames += reader.received(count)
        left = left[count:]
    return [(message, bytes(body)) for message, body in frames]
