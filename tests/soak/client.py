"""One raw connection of HTTP/1.1, on which anything can be written."""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
from typing import NamedTuple

from typing_extensions import Self

_RESET = struct.pack("ii", 1, 0)
"""SO_LINGER of 0 seconds: the kernel sends RST in place of FIN."""


class Reply(NamedTuple):
    status: int
    body: bytes
    whole: bool
    """It ended as its head says: all bytes of its length, or its last chunk."""


class RawClient:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self._writer = reader, writer

    @classmethod
    async def connect(cls, address: str, tls: ssl.SSLContext | None = None) -> Self:
        """`unix:/path` is a socket file."""
        if address.startswith("unix:"):
            return cls(*await asyncio.open_unix_connection(address.removeprefix("unix:")))
        host, _, port = address.rpartition("/")[2].rpartition(":")
        return cls(*await asyncio.open_connection(host, int(port), ssl=tls))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        self._writer.close()

    def post(self, path: str, body: bytes, *headers: str) -> None:
        self.send(head(path, f"Content-Length: {len(body)}", *headers) + body)

    def send(self, data: bytes) -> None:
        self._writer.write(data)

    async def sent(self) -> None:
        """Until the transport takes more."""
        await self._writer.drain()

    async def reply(self) -> Reply:
        """Raises ConnectionError, or IncompleteReadError where the server closes before the end of a head."""
        status, fields = await self.reply_head()
        return Reply(status, *await self.reply_body(fields))

    async def reply_head(self) -> tuple[int, dict[bytes, bytes]]:
        """Status and fields, with names in lower case. Raises as `reply`."""
        lines = (await self.reader.readuntil(b"\r\n\r\n")).split(b"\r\n")
        fields = {name.lower(): value.strip() for name, _, value in (line.partition(b":") for line in lines[1:])}
        return int(lines[0].split()[1]), fields

    async def reply_body(self, fields: dict[bytes, bytes]) -> tuple[bytes, bool]:
        """The body, and whether it ended as the head says. Raises as `reply`."""
        if fields.get(b"transfer-encoding") == b"chunked":
            return await self._chunks()
        return await self.reader.readexactly(int(fields.get(b"content-length", b"0"))), True

    async def until_closed(self) -> bytes:
        return await self.reader.read()

    def leave(self, *, reset: bool) -> None:
        if reset:
            own = self._writer.get_extra_info("socket")
            if own is not None and own.family != socket.AF_UNIX:  # it may have ended
                own.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            self._writer.transport.abort()
        else:
            self._writer.close()

    async def _chunks(self) -> tuple[bytes, bool]:
        body = b""
        try:
            while size := int(await self.reader.readline() or b"-1", 16):
                if size < 0:
                    return body, False
                body += (await self.reader.readexactly(size + 2))[:-2]
            await self.reader.readline()
        except (asyncio.IncompleteReadError, ConnectionError):
            return body, False
        return body, True


def head(path: str, *headers: str, method: str = "POST") -> bytes:
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: soak", *headers, "", ""]).encode()
