"""The phrase of a status line that ASGI has no word for: `reason` in the message that starts a reply."""

from __future__ import annotations

import asyncio

EXTENSION = "msx.status_line"
"""The key of an ASGI scope that has the connection's StatusLine."""


class StatusLine:
    """What uvicorn's replies of one connection write to: its transport, but for the phrase of the next status line.

    One reply at a time is written, and what a reply writes first is its head.
    """

    __slots__ = ("_transport", "close", "is_closing", "reason")

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self.close, self.is_closing = transport.close, transport.is_closing
        self.reason = b""
        """The phrase of the next reply; empty for the usual one."""

    def write(self, data: bytes) -> None:
        if self.reason:
            version, status, _ = data.split(b" ", 2)
            data = b"%b %b %b%b" % (version, status, self.reason, data[data.index(b"\r\n") :])
            self.reason = b""
        self._transport.write(data)
