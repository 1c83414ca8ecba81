"""Messages between a worker and its function processes: packed values, each after its length."""

import socket
import struct
from typing import Any

from msx_core.packed import pack, unpack

_LENGTH = struct.Struct("<Q")
MOST_BYTES = 4 << 30
"""Bytes of one message: a batch of instances."""


def send(sock: socket.socket, message: list[Any]) -> None:
    """Raises OSError when the other side is gone, and what `pack` raises."""
    data = pack(message)
    sock.sendall(_LENGTH.pack(len(data)))
    sock.sendall(data)


def receive(sock: socket.socket) -> list[Any] | None:
    """None when the other side is gone. Raises InvalidPacked."""
    head = _read(sock, _LENGTH.size)
    if head is None:
        return None
    (length,) = _LENGTH.unpack(head)
    data = _read(sock, length) if length <= MOST_BYTES else None
    return None if data is None else list(unpack(data))


def _read(sock: socket.socket, count: int) -> bytearray | None:
    data = bytearray(count)
    view, at = memoryview(data), 0
    while at < count:
        try:
            got = sock.recv_into(view[at:])
        except ConnectionError:
            return None
        if not got:
            return None
        at += got
    return data
