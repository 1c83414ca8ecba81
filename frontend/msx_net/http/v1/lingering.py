"""The end of a connection whose client still sends."""

from __future__ import annotations

import asyncio

from msx_net.connections.connection import forgiven
from msx_net.connections.limits import ConnectionLimits

LONGEST = 30.0
"""Seconds until it ends, whatever the client does."""

QUIET = 5.0
"""Seconds without a byte after which it ends."""


class Lingering:
    """Reads and drops what comes, so that the client sees the reply: the kernel resets a connection that is closed
    over bytes that were not read, and what the client has not read of the reply is lost.

    Clients that look are told by the end of our side at once; over TLS there is no such end.
    """

    def __init__(self, transport: asyncio.Transport, limits: ConnectionLimits, now: float) -> None:
        self._transport, self._left = transport, limits.max_refused_body_size
        self._since = self._last = now
        if transport.can_write_eof():
            transport.write_eof()

    def drop(self, size: int, now: float) -> None:
        self._last = now
        self._left -= size
        if self._left < 0:
            self._transport.close()

    def forgive(self, seconds: float, now: float) -> None:
        self._since = forgiven(self._since, seconds, now)
        self._last = forgiven(self._last, seconds, now)

    def look(self, now: float) -> None:
        if now - self._last >= QUIET or now - self._since >= LONGEST:
            self._transport.close()
