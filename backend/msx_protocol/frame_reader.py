"""Decodes messages from the bytes of a stream socket."""

import ctypes
from typing import Any, Generic, TypeVar

import msgspec

from msx_protocol.frames import MAX_BODY, MAX_HEAD, PREFIX, ProtocolError

RECEIVE_SIZE = 1 << 16
"""Bytes of the receive buffer for all but large frames."""
PREFIX_SIZE = PREFIX.size
LARGE = 1 << 15
"""Bytes. A body of this size gets a buffer of its own, and is not copied; smaller ones are gathered."""

T = TypeVar("T")

_encode = msgspec.msgpack.Encoder().encode


class FrameReader(Generic[T]):
    """Receive into `space()`, then call `received()` with the number of bytes.

    `messages` is the union of expected messages; anything else raises ProtocolError.
    """

    def __init__(self, messages: Any, max_head: int = MAX_HEAD, max_body: int = MAX_BODY) -> None:
        """Bytes of a frame at most; they are looked at where a frame is larger than the buffer."""
        self._max_head, self._max_body = max_head, max_body
        self._decoder: msgspec.msgpack.Decoder[T] = msgspec.msgpack.Decoder(messages)
        self._use(bytearray(RECEIVE_SIZE))
        self._held = 0  # bytes of it that are the beginning of a frame
        self._large: tuple[T, bytearray] | None = None
        self._filled = 0  # bytes of the large body that are there

    def restart(self) -> None:
        """Drop the beginning of a frame: its connection has ended, and another one begins."""
        self._held, self._large = 0, None
        self._use(bytearray(RECEIVE_SIZE))

    def take_begun(self) -> list[bytes | bytearray]:
        """The beginning of a frame that is not complete, for another reader; this one forgets it."""
        begun: list[bytes | bytearray] = [bytes(self._buffer[: self._held])]
        if self._large is not None:
            head, body = _encode(self._large[0]), self._large[1]
            begun = [PREFIX.pack(len(head), len(body)) + head, body[: self._filled]]
        self.restart()
        return begun

    def space(self) -> memoryview:
        """The buffer for the next bytes. Drop it before the bodies are used: a bytearray with a view cannot grow."""
        if self._large is None:
            return self._view[self._held :] if self._held else self._view
        return memoryview(self._large[1])[self._filled :]

    def received(self, count: int) -> list[tuple[T, bytearray]]:
        """All messages that are complete now, each with its body, which belongs to the caller."""
        if self._large is not None:
            return self._received_large(count)
        buffer, start, end = self._buffer, 0, self._held + count
        frames: list[tuple[T, bytearray]] = []
        while end - start >= PREFIX_SIZE:
            head_size, body_size = PREFIX.unpack_from(buffer, start)
            head = start + PREFIX_SIZE
            body = head + head_size
            stop = body + body_size
            if stop > end:
                break
            frames.append((self._decode(buffer[head:body]), buffer[body:stop]))
            start = stop
        if start == end and len(buffer) == RECEIVE_SIZE:
            self._held = 0
        else:
            self._keep(start, end)
        return frames

    def _received_large(self, count: int) -> list[tuple[T, bytearray]]:
        assert self._large is not None
        self._filled += count
        if self._filled < len(self._large[1]):
            return []
        frame, self._large = self._large, None
        return [frame]

    def _keep(self, start: int, end: int) -> None:
        """Keeps the bytes after the last complete frame, in a buffer that can hold the rest of their frame."""
        rest = self._buffer[start:end]
        size = RECEIVE_SIZE
        if len(rest) >= PREFIX_SIZE:
            head_size, body_size = PREFIX.unpack_from(rest)
            if head_size > self._max_head or body_size > self._max_body:
                raise ProtocolError(self._too_large(head_size, body_size))
            if body_size >= LARGE:
                if len(rest) >= PREFIX_SIZE + head_size:
                    self._begin_large(rest, PREFIX_SIZE + head_size, body_size)
                    return
                body_size = 0
            size = max(size, PREFIX_SIZE + head_size + body_size)
        if size != len(self._buffer):
            self._use(bytearray(size))
        self._buffer[: len(rest)] = rest
        self._held = len(rest)

    def _too_large(self, head: int, body: int) -> str:
        part, size, limit = ("head", head, self._max_head) if head > self._max_head else ("body", body, self._max_body)
        return f"a frame claims a {part} of {size} bytes; at most {limit} are allowed"

    def _use(self, buffer: bytearray) -> None:
        self._buffer, self._view = buffer, memoryview(buffer)

    def _begin_large(self, rest: bytearray, body: int, size: int) -> None:
        data = uninitialised(size)
        self._large, self._filled, self._held = (self._decode(rest[PREFIX_SIZE:body]), data), len(rest) - body, 0
        data[: self._filled] = rest[body:]

    def _decode(self, head: bytearray) -> T:
        try:
            return self._decoder.decode(head)
        except msgspec.DecodeError as error:
            raise ProtocolError(f"a frame's head is not a message of this protocol: {error}") from None


def uninitialised(size: int) -> bytearray:
    """`bytearray(size)` without zeros: for megabytes, filling costs more than receiving."""
    made: bytearray = _new_bytearray(None, size)
    return made


_new_bytearray = ctypes.pythonapi.PyByteArray_FromStringAndSize
_new_bytearray.argtypes, _new_bytearray.restype = (ctypes.c_char_p, ctypes.c_ssize_t), ctypes.py_object
