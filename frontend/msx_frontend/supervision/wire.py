"""Messages between the supervisor and a frontend: JSON behind its length, with descriptors beside it."""

import contextlib
import json
import os
import socket
import struct
from collections.abc import Iterable, Sequence
from typing import Any

VERSION = 2
"""Raised by each change of a message or of its meaning: supervisor and frontend may be of two releases."""
LONGEST = 1 << 24
"""Bytes of a message: it may hold a whole environment."""
MOST_DESCRIPTORS = 253
"""Descriptors beside a message; the kernel's SCM_MAX_FD."""

_SIZE = struct.Struct("!I")

Message = dict[str, Any]


def send(sock: socket.socket, message: Message, descriptors: Sequence[int] = ()) -> None:
    """Raises OSError, also for a message that is too large."""
    data = json.dumps(message).encode()
    if len(data) > LONGEST or len(descriptors) > MOST_DESCRIPTORS:
        raise OSError(f"a message of {len(data)} bytes with {len(descriptors)} descriptors is too large")
    size = _SIZE.pack(len(data))
    socket.send_fds(sock, [size], descriptors) if descriptors else sock.sendall(size)
    sock.sendall(data)


def receive(sock: socket.socket) -> tuple[Message, list[int]]:
    """The descriptors are the caller's, and are not inherited. Raises EOFError at the end, and OSError."""
    head, descriptors, _, _ = socket.recv_fds(sock, _SIZE.size, MOST_DESCRIPTORS)
    for fd in descriptors:
        os.set_inheritable(fd, False)
    try:
        head += _exactly(sock, _SIZE.size - len(head))
        (size,) = _SIZE.unpack(head)
        if size > LONGEST:
            raise OSError(f"a message of {size} bytes is too large")
        message: Message = json.loads(_exactly(sock, size))
    except BaseException:
        close_all(descriptors)
        raise
    return message, descriptors


def close_all(descriptors: Iterable[int]) -> None:
    for fd in descriptors:
        with contextlib.suppress(OSError):
            os.close(fd)


def _exactly(sock: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        if not (part := sock.recv(size - len(data))):
            raise EOFError
        data += part
    return bytes(data)
