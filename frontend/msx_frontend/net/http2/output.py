"""What goes out on one connection: frames of one turn of the loop in one write, bodies as far as windows allow."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from msx_frontend.net.http2.errors import ConnectionFault, ErrorCode
from msx_frontend.net.http2.frames import DATA
from msx_frontend.net.http2.limits import DEFAULT_WINDOW, LARGEST_WINDOW
from msx_frontend.net.http2.stall import StallWatch

if TYPE_CHECKING:
    from msx_frontend.net.http2.stream import Stream

WRITE_SIZE = 1 << 18
"""Bytes that are gathered before the transport is asked whether it takes more."""

MAX_CONTROL = 1_000
"""Frames that answer the peer's own while it reads nothing."""


class Output:
    """A stream that cannot send at once stands in line for the connection, or waits for a window of its own."""

    __slots__ = (
        "_line",
        "_loop",
        "_on_flood",
        "_parts",
        "_piled",
        "_size",
        "_transport",
        "data_frames",
        "initial_window",
        "max_frame",
        "paused",
        "stall",
        "window",
    )

    def __init__(self, transport: asyncio.WriteTransport, stall: StallWatch, on_flood: Callable[[], None]) -> None:
        self._transport, self.stall, self._on_flood = transport, stall, on_flood
        self._loop = asyncio.get_running_loop()
        self._parts: list[bytes | memoryview] = []
        self._size = 0
        self._piled = 0
        self._line: deque[Stream] = deque()
        self.paused = False
        """The transport holds enough."""
        self.window = DEFAULT_WINDOW
        """Bytes of all bodies that the peer still takes."""
        self.initial_window = DEFAULT_WINDOW
        self.max_frame = 1 << 14
        """The largest payload that the peer takes."""
        self.data_frames = 0

    # -- frames --

    def put(self, *parts: bytes | memoryview) -> None:
        """To be sent at the end of the loop's turn."""
        if not self._parts:
            self._loop.call_soon(self.flush)
        self._parts += parts

    def control(self, frame: bytes) -> None:
        """A frame that no stream waits for. Whoever makes us send many and reads none loses the connection."""
        if self.paused:
            self._piled += 1
            if self._piled > MAX_CONTROL:
                self._on_flood()
                return
        self.put(frame)

    def flush(self) -> None:
        parts, self._parts, self._size = self._parts, [], 0
        if parts and not self._transport.is_closing():
            self._transport.write(b"".join(parts) if len(parts) > 1 else parts[0])

    # -- bodies --

    def offer(self, stream: Stream) -> None:
        """Sends what the windows allow; for the rest the stream stands in line, or waits for its own window."""
        while stream.sendable and self._takes(stream):
            self._advance(stream)
        if stream.blocked:
            self.stall.moved(stream)
            self._line_up(stream)

    def wake(self, stream: Stream) -> None:
        """The stream's own window has opened."""
        self._line_up(stream)
        self.pump()

    def pump(self) -> None:
        """One frame of each stream in turn, until nobody can send."""
        line = self._line
        while line and self._takes(line[0]):
            stream = line.popleft()
            stream.in_line = False
            if not stream.sendable:
                continue  # it was reset, or its window was made smaller
            self._advance(stream)
            if stream.blocked:
                self.stall.moved(stream)
                self._line_up(stream)
            else:
                self.stall.done(stream)
                stream.emptied()

    def pause(self) -> None:
        self.paused = True
        self.stall.paused()

    def resume(self) -> None:
        self.paused, self._piled = False, 0
        self.stall.resumed()
        self.pump()

    def widen(self, increment: int) -> None:
        """Raises ConnectionFault."""
        self.window += increment
        if self.window > LARGEST_WINDOW:
            raise ConnectionFault(
                ErrorCode.FLOW_CONTROL_ERROR, f"The connection's window is at most {LARGEST_WINDOW} bytes."
            )
        self.pump()

    def _line_up(self, stream: Stream) -> None:
        if stream.sendable and not stream.in_line:
            stream.in_line = True
            self._line.append(stream)

    def _takes(self, stream: Stream) -> bool:
        return not self.paused and (self.window > 0 or stream.next_kind != DATA)

    def _advance(self, stream: Stream) -> None:
        self._size += stream.advance()
        if self._size > WRITE_SIZE:
            self.flush()
