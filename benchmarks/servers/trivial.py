"""A server that answers each request with a fixed reply: it shows the limit of the load and the machine.

python -m benchmarks.servers.trivial PORT BYTES
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import cast

import uvloop

from benchmarks.load.client import Address
from benchmarks.peers.process import free_ports, running

_LENGTH = re.compile(rb"(?i)\r\ncontent-length: *(\d+)")
_BUFFER = bytearray(1 << 18)
"""Shared by all connections: its content is processed before the next one reads."""


class Fixed(asyncio.BufferedProtocol):
    """Every request of a connection is as long as its first, whose head is expected to come in one piece."""

    def __init__(self, reply: bytes) -> None:
        self._reply = reply
        self._size = self._got = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's, which is not a subclass

    def get_buffer(self, sizehint: int) -> bytearray:
        return _BUFFER

    def buffer_updated(self, nbytes: int) -> None:
        self._size = self._size or request_size(bytes(_BUFFER[:nbytes]))
        self._got += nbytes
        count, self._got = divmod(self._got, self._size)
        if count:
            self._transport.write(self._reply * count)


def request_size(data: bytes) -> int:
    """Bytes of head and body."""
    head = data.index(b"\r\n\r\n") + 4
    length = _LENGTH.search(data, 0, head)
    return head + int(length[1]) if length else head


@contextlib.contextmanager
def serve(body: int) -> Iterator[Address]:
    """One whose replies have bodies of this size."""
    address = Address("127.0.0.1", free_ports(1)[0])
    command = [sys.executable, "-m", "benchmarks.servers.trivial", str(address.port), str(body)]
    with TemporaryDirectory(prefix="msx-benchmark-") as folder:
        environment = {"PYTHONPATH": str(Path(__file__).parents[2])}
        with running("the trivial server", command, Path(folder), address, "/", environment=environment):
            yield address


async def main(port: int, body: int) -> None:
    reply = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % body + b"x" * body
    server = await asyncio.get_running_loop().create_server(lambda: Fixed(reply), "127.0.0.1", port)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(main(int(sys.argv[1]), int(sys.argv[2])))
