"""Sockets that listen."""

from __future__ import annotations

import socket
from typing import Any

BACKLOG = 2048
"""Connections that wait in the kernel until they are accepted."""


def listen(sock: socket.socket, address: Any) -> socket.socket:
    """Bind it to the address in its family's form, so that connections can be accepted without blocking.

    Raises OSError; then it is closed.
    """
    try:
        if sock.family != socket.AF_UNIX:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(address)
        sock.listen(BACKLOG)
    except OSError:
        sock.close()
        raise
    sock.setblocking(False)
    return sock
