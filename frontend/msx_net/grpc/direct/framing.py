"""Messages as they stand in a stream: a flag, the length in four bytes, the message (gRPC over HTTP/2)."""

from collections.abc import Iterator
from typing import NamedTuple

from msx_net.grpc.codes import Code
from msx_net.grpc.refused import Refused

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

    def feed(self, data: bytes) -> Iterator[ReceivedMessage]:
        """Yield those that are complete with this piece, as far as they are asked for. Raises Refused."""
        self.add(data)
        while (message := self.next()) is not None:
            yield message

    def add(self, data: bytes) -> None:
        """A piece of the stream, for `next`."""
        self._buffer += data

    def next(self) -> ReceivedMessage | None:
        """The first message that is complete. Raises Refused."""
        buffer = self._buffer
        if len(buffer) < PREFIX or len(buffer) < (end := PREFIX + self._length(buffer)):
            return None
        message = ReceivedMessage(bool(buffer[0]), bytes(memoryview(buffer)[PREFIX:end]))
        del buffer[:end]
        return message

    def end(self) -> None:
        """The client has sent all. Raises Refused."""
        if self._buffer:
            raise Refused(Code.INTERNAL, "The request ends in the middle of a message.")

    def _length(self, buffer: bytearray) -> int:
        length = int.from_bytes(buffer[1:PREFIX], "big")
        if buffer[0] > 1:
            raise Refused(Code.INTERNAL, f"A message begins with the flag {buffer[0]}, which is neither 0 nor 1.")
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
