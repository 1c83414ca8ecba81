"""Messages between the supervisor and a frontend: JSON behind its length, with descriptors before it."""

import contextlib
import errno
import json
import os
import socket
import struct
from collections.abc import Iterable, Sequence
from typing import Any

VERSION = 3
"""Raised by each change of a message or of its meaning: supervisor and frontend may be of two releases."""
OLDEST = 3
"""Version that is still spoken: while a server is upgraded, one of the two is the older release."""
STATES = (1,)
"""Versions of a supervisor's state that this release reads; it writes the last one."""
LONGEST = 1 << 24
"""Bytes of a message: it may hold a whole environment."""
PART = 253
"""Descriptors that the kernel takes at a time (SCM_MAX_FD)."""
MOST_DESCRIPTORS = 1 << 14

HEAD = struct.Struct("!IH")
"""Bytes of the text, and how many descriptors come before it."""

Message = dict[str, Any]


class NoRoomError(OSError):
    """A message has come whole, but for descriptors for which this process has no room: the next one can be read."""


def send(sock: socket.socket, message: Message, descriptors: Sequence[int] = ()) -> None:
    """Raises OSError, also for a message that is too large."""
    data = json.dumps(message).encode()
    if len(data) > LONGEST or len(descriptors) > MOST_DESCRIPTORS:
        raise OSError(f"a message of {len(data)} bytes with {len(descriptors)} descriptors is too large")
    sock.sendall(HEAD.pack(len(data), len(descriptors)))
    for at in range(0, len(descriptors), PART):
        socket.send_fds(sock, [b"\0"], descriptors[at : at + PART])
    sock.sendall(data)


def receive(sock: socket.socket) -> tuple[Message, list[int]]:
    """The descriptors are the caller's, and are not inherited. Raises EOFError at the end, NoRoomError, and OSError."""
    size, count = HEAD.unpack(_exactly(sock, HEAD.size))
    if size > LONGEST or count > MOST_DESCRIPTORS:
        raise OSError(f"a message of {size} bytes with {count} descriptors is too large")
    descriptors: list[int] = []
    try:
        for _ in range(0, count, PART):
            descriptors += _part(sock)
        message: Message = json.loads(_exactly(sock, size))
        if len(descriptors) < count:
            raise NoRoomError(errno.EMFILE, os.strerror(errno.EMFILE))
    except BaseException:
        close_all(descriptors)
        raise
    return message, descriptors


def close_all(descriptors: Iterable[int]) -> None:
    for fd in descriptors:
        with contextlib.suppress(OSError):
            os.close(fd)


def _part(sock: socket.socket) -> list[int]:
    """Up to `PART` descriptors: those for which this process has room. Raises EOFError where none has come."""
    _, descriptors, flags, _ = socket.recv_fds(sock, 1, PART)
    for fd in descriptors:
        os.set_inheritable(fd, False)
    if not descriptors and not flags & socket.MSG_CTRUNC:
        raise EOFError
    return descriptors


def _exactly(sock: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        if not (part := sock.recv(size - len(data))):
            raise EOFError
        data += part
    return bytes(data)
