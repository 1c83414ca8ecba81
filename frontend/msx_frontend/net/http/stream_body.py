"""A body that grows, written past ASGI: the messages of a small event cost more than the event."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from uvicorn.protocols.http.flow_control import FlowControl

EXTENSION = "msx.stream"
"""Of the ASGI scopes of our connections: their StreamBody."""


class StreamBody:
    """Of one connection; written behind the head of a reply without a length, which uvicorn says is chunked.

    The end of the reply is told to ASGI's `send`.
    """

    __slots__ = ("_flow", "_transport", "on_room")

    def __init__(self, transport: asyncio.Transport, flow: FlowControl) -> None:
        self._transport, self._flow = transport, flow
        self.on_room: Callable[[], None] | None = None
        """Called when it is no longer full."""

    @property
    def full(self) -> bool:
        """The client reads too slowly."""
        return self._flow.write_paused

    def write(self, data: bytes) -> None:
        """One chunk, of one byte at least. A client that has left is told nothing."""
        if not self._transport.is_closing():
            self._transport.write(b"%x\r\n%b\r\n" % (len(data), data))

    def resumed(self) -> None:
        if self.on_room is not None:
            self.on_room()
