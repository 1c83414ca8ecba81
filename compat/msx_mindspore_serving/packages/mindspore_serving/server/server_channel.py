"""Messages between a start script and its server: JSON objects, each behind its length."""

import json
import socket
import struct
from typing import Any

_LENGTH = struct.Struct("!I")

Message = dict[str, Any]


class ServerChannel:
    """The script's end. Not for several senders at the same time."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock

    def send(self, message: Message) -> None:
        """Raises OSError when the server has ended."""
        data = json.dumps(message).encode()
        self._socket.sendall(_LENGTH.pack(len(data)) + data)

    def receive(self) -> Message | None:
        """The next message; None at the end."""
        try:
            head = self._read(_LENGTH.size)
            data = head and self._read(_LENGTH.unpack(head)[0])
        except OSError:
            return None
        return json.loads(data) if data else None

    def end(self) -> None:
        """The server stops, and says nothing but its last words."""
        try:
            self._socket.shutdown(socket.SHUT_WR)
        except OSError:
            return

    def close(self) -> None:
        self._socket.close()

    def _read(self, size: int) -> bytes:
        """Empty where the other end has closed before."""
        data = bytearray()
        while len(data) < size:
            piece = self._socket.recv(size - len(data))
            if not piece:
                return b""
            data += piece
        return bytes(data)
