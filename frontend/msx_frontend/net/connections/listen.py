"""Sockets that listen."""

from __future__ import annotations

import errno
import os
import socket
from pathlib import Path
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


def bind_unix(path: str) -> socket.socket:
    """Remove a socket file that a killed server left; any other file is not ours and stays. Raises OSError."""
    if os.path.exists(path) and not Path(path).is_socket():
        raise FileExistsError(errno.EEXIST, "a file of this name exists and is not a socket")
    if os.path.exists(path) and not _answers(path):
        os.unlink(path)
    return listen(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM), path)


def _answers(path: str) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        return probe.connect_ex(path) == 0
