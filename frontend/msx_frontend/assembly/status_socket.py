"""The Unix socket that `msx-serve --status` reads models and workers from. Only the server's user can open it.

It answers without a key, also when all keys have expired, and does not depend on the listeners, their TLS or
addresses.
"""

import asyncio
import contextlib
import logging
import os
import socket
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

log = logging.getLogger("msx.server")

NAME = "status.sock"
LIMIT = 5.0
"""Seconds that a reader has to read the answer, and that `ask` waits for each piece of it."""

MOST_BYTES = 64 << 20
"""The largest answer."""


class Status(msgspec.Struct, frozen=True):
    """Descriptions of all versions, why models and workflows of the start are missing, and the devices."""

    versions: list[dict[str, Any]]
    not_loaded: list[str] = []
    devices: list[dict[str, Any]] = []
    supervisor: dict[str, Any] | None = None
    """See `SupervisorClient.describe`; None where there is none."""


Describe = Callable[[], Status]


class StatusSocket:
    """Answers each connection with one JSON object, a `Status`, and closes it. It does not accept commands."""

    def __init__(self, path: Path) -> None:
        """`path` must be in a folder that only one server uses."""
        self.path = path
        self._server: asyncio.Server | None = None

    async def start(self, describe: Describe) -> bool:
        """Returns False, and logs a warning, if the folder cannot have a socket."""
        try:
            bound = bind_private(self.path)
        except OSError as error:
            reason = error.strerror or error
            log.warning("%s cannot be made: %s. msx-serve --status shows no models of this server.", self.path, reason)
            return False
        self._server = await asyncio.start_unix_server(partial(_answer, describe), sock=bound)
        return True

    def leave(self) -> None:
        """Another server makes the file anew."""
        if self._server is not None:
            self._server.close()
            self._server = None

    def close(self) -> None:
        if self._server is not None:
            self._server.close()
            self.path.unlink(missing_ok=True)


async def _answer(describe: Describe, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError, asyncio.TimeoutError):
        writer.write(msgspec.json.encode(describe()))
        await asyncio.wait_for(writer.drain(), LIMIT)
        writer.close()
        await asyncio.wait_for(writer.wait_closed(), LIMIT)
    writer.transport.abort()


def ask(path: Path) -> Status:
    """Raises OSError, or ValueError for an empty answer or one that is not from a server."""
    answer = bytearray()
    with socket.socket(socket.AF_UNIX) as connection, short_name(path) as short:
        connection.settimeout(LIMIT)
        connection.connect(short)
        while piece := connection.recv(1 << 16):
            answer += piece
            if len(answer) > MOST_BYTES:
                raise ValueError(f"{path} sent more than {MOST_BYTES >> 20} MiB")
    return msgspec.json.decode(answer, type=Status)


def bind_private(path: Path) -> socket.socket:
    """Bind with mode 0600 from the beginning. An existing file was left by a killed server."""
    path.unlink(missing_ok=True)
    sock = socket.socket(socket.AF_UNIX)
    try:
        os.fchmod(sock.fileno(), 0o600)  # of the socket, from which Linux takes the mode of the file
        with short_name(path) as short:
            sock.bind(short)
        sock.listen()
    except OSError:
        sock.close()
        raise
    sock.setblocking(False)
    return sock


@contextlib.contextmanager
def short_name(path: Path) -> Iterator[str]:
    """A shorter name of the file, because the name of a socket may have at most 107 bytes."""
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)
