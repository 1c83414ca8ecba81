"""Output of one connection: frames of one turn of the loop in one write, bodies as far as windows allow."""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Protocol

from msx_net.http2.flow_control import FlowControl
from msx_net.http2.stall import StallWatch

WRITE_SIZE = 1 << 18
"""Bytes that are gathered before the transport is asked whether it takes more."""

MAX_CONTROL = 1_000
"""Frames that answer the peer's own while it reads nothing."""


class Sender(Protocol):
    """A stream, as far as the output of its connection knows it."""

    id: int
    in_line: bool
    """It waits for its turn."""

    @property
    def blocked(self) -> bool:
        """Something waits to be sent."""

    @property
    def sendable(self) -> bool:
        """The window of the stream itself allows to send what waits."""

    @property
    def needs_window(self) -> bool:
        """The frame that waits first has bytes of a body, which windows count."""

    def advance(self) -> int:
        """Sends one frame, and returns how many bytes it has."""

    def emptied(self) -> None:
        """Nothing waits any more."""


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
        "flow",
        "max_frame",
        "paused",
        "stall",
    )

    def __init__(
        self,
        transport: asyncio.WriteTransport,
        flow: FlowControl,
        stall: StallWatch[Sender],
        on_flood: Callable[[], None],
    ) -> None:
        self._transport = transport
        self.flow = flow
        self.stall = stall
        self._on_flood = on_flood
        self._loop = asyncio.get_running_loop()
        self._parts: list[bytes | memoryview] = []
        self._size = 0
        self._piled = 0
        self._line: deque[Sender] = deque()
        self.paused = False
        """The transport holds enough."""
        self.max_frame = 1 << 14
        """The largest payload that the peer takes."""

    # -- frames --

    def put(self, *parts: bytes | memoryview) -> None:
        """Send the parts at the end of the loop's turn."""
        if not self._parts:
            self._loop.call_soon(self.flush)
        self._parts += parts

    def control(self, frame: bytes) -> None:
        """A frame that belongs to no answer. A peer that makes us send many and reads none loses the connection."""
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

    def offer(self, stream: Sender) -> None:
        """Sends what the windows allow; for the rest the stream stands in line, or waits for its own window."""
        while stream.sendable and self._takes(stream):
            self._advance(stream)
        if stream.blocked:
            self.stall.moved(stream)
            self._line_up(stream)

    def wake(self, stream: Sender) -> None:
        """The stream's own window has opened."""
        self._line_up(stream)
        self.pump()

    def pump(self) -> None:
        """One frame of each stream in turn, until none can send."""
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
        self.flow.widen(increment)
        self.pump()

    def _line_up(self, stream: Sender) -> None:
        if stream.sendable and not stream.in_line:
            stream.in_line = True
            self._line.append(stream)

    def _takes(self, stream: Sender) -> bool:
        return not self.paused and (self.flow.send_window > 0 or not stream.needs_window)

    def _advance(self, stream: Sender) -> None:
        self._size += stream.advance()
        if self._size > WRITE_SIZE:
            self.flush()
