"""A reply that ends with its connection (RFC 9112, 6.3, number 8), as HTTP/1.0 has it.

Such a reply that breaks must not end as a whole one does. While it is open, any close of the socket is a reset
(SO_LINGER of 0 seconds), also that by the kernel when the server is killed. A Unix socket has no reset: there a broken
reply cannot be told from a whole one.
"""

from __future__ import annotations

import asyncio
import socket
import struct

_RESET, _ORDINARY = struct.pack("ii", 1, 0), struct.pack("ii", 0, 0)


def open_reply(transport: asyncio.Transport) -> None:
    """Make every close of the connection a reset until `end_reply`."""
    _set_linger(transport, _RESET)


def end_reply(transport: asyncio.Transport) -> None:
    """Make the close of the connection the end of a whole reply."""
    _set_linger(transport, _ORDINARY)


def _set_linger(transport: asyncio.Transport, linger: bytes) -> None:
    sock = transport.get_extra_info("socket")
    if sock is not None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
