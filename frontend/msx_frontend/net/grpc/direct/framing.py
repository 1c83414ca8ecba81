"""Messages as they stand in a stream: a flag, the length in four bytes, the message (gRPC over HTTP/2)."""

from __future__ import annotations

from typing import NamedTuple

from msx_frontend.net.grpc.codes import Code
from msx_frontend.net.grpc.refused import Refused

PREFIX = 5


class ReceivedMessage(NamedTuple):
    compressed: bool
    data: bytes


class MessageReader:
    """Makes messages of at most `limit` bytes of pieces of any size."""

    __slots__ = ("_buffer", "_limit")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[ReceivedMessage]:
        """Those that are complete with this piece. Raises Refused."""
        buffer = self._buffer
        buffer += data
        messages, at = list[ReceivedMessage](), 0
        while len(buffer) - at >= PREFIX:
            end = at + PREFIX + self._length(buffer, at)
            if end > len(buffer):
                break
            messages.append(ReceivedMessage(bool(buffer[at]), bytes(memoryview(buffer)[at + PREFIX : end])))
            at = end
        del buffer[:at]
        return messages

    def end(self) -> None:
        """The client has sent all. Raises Refused."""
        if self._buffer:
            raise Refused(Code.INTERNAL, "The request ends in the middle of a message.")

    def _length(self, buffer: bytearray, at: int) -> int:
        length = int.from_bytes(buffer[at + 1 : at + PREFIX], "big")
        if buffer[at] > 1:
            raise Refused(Code.INTERNAL, f"A message begins with the flag {buffer[at]}, which is neither 0 nor 1.")
        if length > self._limit:
            raise too_large(length, self._limit)
        return length


def framed(message: bytes) -> bytes:
    return b"\0%b%b" % (len(message).to_bytes(4, "big"), message)


def not_compressed() -> Refused:
    return Refused(Code.INTERNAL, "A message is marked as compressed, but the call has no grpc-encoding.")


def too_large(size: int, limit: int) -> Refused:
    """gRPC's words, and the remedy."""
    remedy = "raise max_request_size in config.properties, or max_msg_mb_size in the start script that opened the port"
    return Refused(Code.RESOURCE_EXHAUSTED, f"Received message larger than max ({size} vs. {limit}): {remedy}.")
