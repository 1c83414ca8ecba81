"""The server's end of the channel to its start script."""

import asyncio
import logging
import socket
import struct
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import msgspec

log = logging.getLogger("msx.script")

_LENGTH = struct.Struct("!I")
MOST_BYTES = 64 << 20
"""Bytes of a message: the script is trusted, its memory is not."""

Message = dict[str, Any]


class CommandError(Exception):
    """A command failed. `kind` says to the script which of its own words to use."""

    def __init__(self, kind: str, detail: str, **more: Any) -> None:
        super().__init__(detail)
        self.said = {"kind": kind, "detail": detail, **more}


Obey = Callable[[Message], Awaitable[None]]
"""Does what a message says. Raises CommandError."""


class ScriptChannel:
    """Commands are done one after the other; `ended` is called when the script closes its end, or has died."""

    def __init__(self, descriptor: int) -> None:
        self._socket = socket.socket(fileno=descriptor)
        self._socket.set_inheritable(False)
        self._socket.setblocking(False)
        self._command: asyncio.Task[None] | None = None

    async def serve(self, obey: Obey, ended: Callable[[], None]) -> None:
        """Until it ends."""
        try:
            while (message := await self._receive()) is not None:
                self._command = asyncio.create_task(self._answer(message, obey, self._command))
        except (OSError, msgspec.DecodeError) as error:
            log.warning("the channel of the start script is broken: %s", error)
        finally:
            ended()

    async def tell(self, event: str, reason: str) -> None:
        """The script is waiting for it, or finds it when the server is gone."""
        with suppress(OSError):
            await self._send({"event": event, "reason": reason})

    def close(self) -> None:
        if self._command is not None:
            self._command.cancel()
        self._socket.close()

    async def _answer(self, message: Message, obey: Obey, before: asyncio.Task[None] | None) -> None:
        if before is not None:
            await asyncio.wait([before])
        answer: Message = {}
        try:
            await obey(message)
        except CommandError as error:
            answer = {"error": error.said}
        except Exception as error:
            log.exception("a bug of the server")
            answer = {"error": {"kind": "bug", "detail": f"a bug of the server: {error}"}}
        with suppress(OSError):
            await self._send(answer)

    async def _send(self, message: Message) -> None:
        data = msgspec.json.encode(message)
        await asyncio.get_running_loop().sock_sendall(self._socket, _LENGTH.pack(len(data)) + data)

    async def _receive(self) -> Message | None:
        head = await self._read(_LENGTH.size)
        if head is None:
            return None
        size = _LENGTH.unpack(head)[0]
        if size > MOST_BYTES:
            raise OSError(f"a message of {size} bytes; {MOST_BYTES} are allowed")
        data = await self._read(size)
        return None if data is None else msgspec.json.decode(data, type=Message)

    async def _read(self, size: int) -> bytes | None:
        loop, data = asyncio.get_running_loop(), bytearray()
        while len(data) < size:
            if not (piece := await loop.sock_recv(self._socket, size - len(data))):
                return None
            data += piece
        return bytes(data)
