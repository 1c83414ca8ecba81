"""A connection on which a case sends bytes of its own: what no HTTP library sends, and what none shows."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader

import httpx

from tests.e2e.server import WATCHDOG


class Connection:
    def __init__(self, sock: socket.socket, file: BufferedReader) -> None:
        self._sock, self._file = sock, file

    def send(self, data: bytes) -> None:
        self._sock.sendall(data)

    def head(self) -> tuple[str, dict[str, str]]:
        """Status line and headers of the next answer."""
        line = self._file.readline().decode().rstrip("\r\n")
        headers: dict[str, str] = {}
        while (field := self._file.readline().decode().rstrip("\r\n")) != "":
            name, _, value = field.partition(": ")
            assert name not in headers, f"{name} twice"
            headers[name] = value
        return line, headers

    def body(self, headers: dict[str, str]) -> bytes:
        return self._file.read(int(headers["content-length"]))

    def chunk(self) -> bytes:
        """The next one; empty at the end."""
        size = int(self._file.readline(), 16)
        data = self._file.read(size)
        assert self._file.readline() == b"\r\n"
        return data

    def rest(self) -> bytes:
        """Until the server closes."""
        return self._file.read()

    @property
    def closed(self) -> bool:
        return self._file.read(1) == b""


@contextmanager
def connected(client: httpx.Client) -> Iterator[Connection]:
    """To the listener of this client."""
    url = client.base_url
    with socket.create_connection((url.host, url.port or 80), timeout=WATCHDOG) as sock, sock.makefile("rb") as file:
        yield Connection(sock, file)


def answer_to(client: httpx.Client, request: bytes) -> tuple[str, dict[str, str], bytes]:
    """To one request on a connection of its own: status line, headers, body."""
    with connected(client) as connection:
        connection.send(request)
        line, headers = connection.head()
        return line, headers, connection.body(headers)
