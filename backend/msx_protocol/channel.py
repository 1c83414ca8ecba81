"""One connection of asyncio, as messages."""

import asyncio
import os
import socket
from collections.abc import Callable
from typing import Any, Generic, TypeVar, cast

from msx_protocol.frame_reader import LARGE, FrameReader
from msx_protocol.frames import ProtocolError

T = TypeVar("T")


class Channel(asyncio.BufferedProtocol, Generic[T]):
    """Calls `on_message` for each frame and `on_closed` once, with the error if there was one."""

    def __init__(
        self,
        messages: Any,
        on_message: Callable[[T, bytes], None],
        on_closed: Callable[[Exception | None], None],
        reader: FrameReader[T] | None = None,
    ) -> None:
        """`reader` is one of these messages with limits of its own."""
        self._reader: FrameReader[T] = reader or FrameReader(messages)
        self._on_message = on_message
        self._on_closed = on_closed
        self._transport: asyncio.Transport | None = None
        self._closed = False
        self._held: list[bytes | bytearray] | None = None
        """Frames that wait for another connection; None unless one is to come."""
        self._left = 0
        """Connections that were left, and whose end is not told."""

    def write(self, *parts: bytes | bytearray) -> None:
        """Frames for a worker that is not there are dropped: its end is told by `on_closed`."""
        if self._held is not None:
            self._held += parts
        elif self._transport is not None and not self._transport.is_closing():
            if sum(map(len, parts)) < LARGE:
                self._transport.write(b"".join(parts))
            else:
                self._transport.writelines(parts)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def hold(self) -> None:
        """Keep what is written from now on for the next connection."""
        self._held = []

    def go_on(self) -> None:
        """Write to this connection again."""
        held, self._held = self._held or [], None
        if held:
            self.write(*held)

    @property
    def unsent(self) -> int:
        """Bytes that the kernel has not taken yet."""
        return 0 if self._transport is None else self._transport.get_write_buffer_size()

    @property
    def is_open(self) -> bool:
        return self._transport is not None and not self._transport.is_closing()

    def detach(self) -> tuple[socket.socket, list[bytes | bytearray]]:
        """Leave the connection, without its end: returns a copy of its socket, and the beginning of a frame that was
        read from it. Another connection may follow."""
        assert self._transport is not None
        self._transport.pause_reading()
        copy = socket.socket(fileno=os.dup(self._transport.get_extra_info("socket").fileno()))
        self._left += 1
        self._transport.abort()
        self._transport = None
        return copy, self._reader.take_begun()

    def feed(self, data: bytes | memoryview) -> None:
        """Read what another reader has read from this connection."""
        rest = memoryview(data)
        while rest:
            space = self._reader.space()
            size = min(len(space), len(rest))
            space[:size] = rest[:size]
            del space
            self.buffer_updated(size)
            rest = rest[size:]

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's do not inherit from asyncio's classes
        self.go_on()

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._reader.space()

    def buffer_updated(self, nbytes: int) -> None:
        try:
            for message, body in self._reader.received(nbytes):
                # What is large stays the bytearray that it was received into, although it must not be changed.
                self._on_message(message, bytes(body) if len(body) < LARGE else cast(bytes, body))
        except ProtocolError as error:
            self._end(error)
            self.close()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._left:
            self._left -= 1
        else:
            self._end(exc)

    def _end(self, error: Exception | None) -> None:
        if not self._closed:
            self._closed = True
            self._on_closed(error)
