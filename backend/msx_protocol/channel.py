"""One connection of asyncio, as messages."""

import asyncio
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

    def write(self, *parts: bytes | bytearray) -> None:
        """Frames for a worker that is not there are dropped: its end is told by `on_closed`."""
        if self._transport is not None and not self._transport.is_closing():
            if sum(map(len, parts)) < LARGE:
                self._transport.write(b"".join(parts))
            else:
                self._transport.writelines(parts)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's do not inherit from asyncio's classes

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
        self._end(exc)

    def _end(self, error: Exception | None) -> None:
        if not self._closed:
            self._closed = True
            self._on_closed(error)
