"""A thin HTTP client on raw connections: at the rates of these scripts its own work does not show in the figures."""

from __future__ import annotations

import asyncio
import http.client
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import NamedTuple

import httptools


@dataclass(frozen=True)
class Address:
    host: str
    port: int
    token: str | None = None

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.port}"

    @property
    def authorization(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"} if self.token else {}


class Answer(NamedTuple):
    status: int
    body: bytes


class FullAnswer(NamedTuple):
    """An answer with its headers, whose names are in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes


def answers(address: Address, path: str) -> bool:
    """Whether a GET is answered with 200 now."""
    connection = http.client.HTTPConnection(address.host, address.port, timeout=5)
    try:
        connection.request("GET", path, headers=address.authorization)
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


class Connection:
    """One connection, one request at a time. Raises ConnectionError when the server cuts it."""

    def __init__(self, address: Address, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._address, self._reader, self._writer = address, reader, writer

    @classmethod
    async def open(cls, address: Address) -> Connection:
        return cls(address, *await asyncio.open_connection(address.host, address.port))

    async def post(self, path: str, body: bytes, content_type: str = "application/octet-stream") -> Answer:
        answer = await self.ask(path, body, content_type)
        return Answer(answer.status, answer.body)

    async def ask(self, path: str, body: bytes, content_type: str = "application/octet-stream") -> FullAnswer:
        reply = self._send(path, body, content_type)
        while not reply.ended:
            await self._feed(reply)
        return FullAnswer(reply.status, reply.headers, b"".join(reply.chunks))

    async def stream(self, path: str, body: bytes, content_type: str = "application/json") -> AsyncIterator[bytes]:
        """The chunks of the answer, as they come."""
        reply = self._send(path, body, content_type)
        while reply.chunks or not reply.ended:
            if reply.chunks:
                yield reply.chunks.popleft()
            else:
                await self._feed(reply)

    def send(self, path: str, body: bytes, content_type: str = "application/json") -> None:
        """Sends a request without waiting for its answer."""
        self._send(path, body, content_type)

    def leave(self) -> None:
        """Closes at once, also in the middle of an answer."""
        self._writer.close()

    def _send(self, path: str, body: bytes, content_type: str) -> _Reply:
        headers = {"Host": self._address.host, "Content-Type": content_type, "Content-Length": str(len(body))}
        lines = "".join(f"{name}: {value}\r\n" for name, value in (headers | self._address.authorization).items())
        self._writer.write(f"POST {path} HTTP/1.1\r\n{lines}\r\n".encode() + body)
        return _Reply()

    async def _feed(self, reply: _Reply) -> None:
        data = await self._reader.read(1 << 16)
        if not data:
            raise ConnectionResetError("the server closed the connection before the end of its answer")
        reply.parser.feed_data(data)


class _Reply:
    """Called by the parser."""

    def __init__(self) -> None:
        self.parser = httptools.HttpResponseParser(self)
        self.status = 0
        self.headers: dict[str, str] = {}
        self.chunks: deque[bytes] = deque()
        self.ended = False

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers[name.decode().lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        self.status = self.parser.get_status_code()

    def on_body(self, data: bytes) -> None:
        self.chunks.append(data)

    def on_message_complete(self) -> None:
        self.ended = True
