"""Orders of commands, such as `msx-serve upgrade`, which anybody gives who may open the socket."""

from __future__ import annotations

import contextlib
import json
import socket
import time

from msx_frontend.supervision.wire import HEAD, Message, send

LIMIT = 10.0
"""Seconds that a command has to say what it wants, and to take its answer."""
LONGEST = 1 << 16
"""Bytes of an order."""
MOST = 16
"""Commands that are listened to at a time; others wait in the kernel."""
NO_ORDER = "This is no order of msx-serve upgrade."
TOO_SLOW = f"The order was not complete within {LIMIT:g} seconds."


class Command:
    """A command, while it says what it wants: nobody waits for it."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        connection.setblocking(False)
        self._over, self._came = time.monotonic() + LIMIT, bytearray()

    @property
    def seconds_left(self) -> float:
        return max(self._over - time.monotonic(), 0.0)

    def read(self) -> Message | None:
        """Its order, when all of it is here. Raises OSError, EOFError, and ValueError for what is none."""
        if not (part := self.connection.recv(HEAD.size + LONGEST - len(self._came))):
            raise EOFError
        self._came += part
        if len(self._came) < HEAD.size:
            return None
        size, descriptors = HEAD.unpack_from(self._came)
        if size > LONGEST or descriptors:
            raise ValueError(size)
        text = self._came[HEAD.size : HEAD.size + size]
        return _order(text) if len(text) == size else None

    def answer(self, message: Message) -> None:
        """Answer it, and close its connection. It may have been interrupted."""
        with self.connection, contextlib.suppress(OSError):
            self.connection.settimeout(LIMIT)
            send(self.connection, message)


class Orders:
    """The socket on which commands connect, and those that have not said yet what they want."""

    def __init__(self, listening: socket.socket) -> None:
        self.listening = listening
        listening.setblocking(False)
        self._waiting: dict[socket.socket, Command] = {}

    @property
    def watched(self) -> list[socket.socket]:
        """Sockets that are waited for."""
        return [*self._waiting, *([self.listening] if len(self._waiting) < MOST else [])]

    @property
    def seconds_left(self) -> float | None:
        """Until one has taken too long; None without any."""
        return min((one.seconds_left for one in self._waiting.values()), default=None)

    def readable(self, sock: socket.socket) -> tuple[Command, Message] | None:
        """Something has come on one of the sockets: the command whose order is complete now."""
        if sock is self.listening:
            with contextlib.suppress(OSError):  # it has left
                command = Command(sock.accept()[0])
                self._waiting[command.connection] = command
            return None
        return self._read(self._waiting[sock]) if sock in self._waiting else None

    def refuse_slow(self) -> None:
        for command in [one for one in self._waiting.values() if not one.seconds_left]:
            self._refuse(command, TOO_SLOW)

    def refuse_all(self, reason: str) -> None:
        """Refuse those that have not said yet what they want."""
        for command in [*self._waiting.values()]:
            self._refuse(command, reason)

    def close(self) -> None:
        self.listening.close()
        self.refuse_all("The server takes its orders elsewhere now: ask again.")

    def _read(self, command: Command) -> tuple[Command, Message] | None:
        try:
            order = command.read()
        except (OSError, EOFError):
            del self._waiting[command.connection]
            command.connection.close()
        except (ValueError, RecursionError):
            self._refuse(command, NO_ORDER)
        else:
            if order is not None:
                del self._waiting[command.connection]
                return command, order
        return None

    def _refuse(self, command: Command, reason: str) -> None:
        del self._waiting[command.connection]
        command.answer({"refused": reason})


def _order(text: bytearray) -> Message:
    """Raises ValueError, RecursionError."""
    order = json.loads(text)
    if not isinstance(order, dict) or not isinstance(order.get("python"), str | None):
        raise ValueError("no order")
    return order
