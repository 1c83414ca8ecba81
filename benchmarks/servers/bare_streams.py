"""A server of streams that only writes bytes. It shows how much benchmarks/load/streams.py can read at most."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
from collections.abc import Iterator

from benchmarks.load.client import Address
from benchmarks.load.streams import END, EVENT

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
CHUNK = b"%x\r\n%b\r\n" % (len(EVENT), EVENT)


@contextlib.contextmanager
def bare_server(streams: int, chunks: int, at_once: int) -> Iterator[Address]:
    """Writes `at_once` chunks of a stream together, then those of the next."""
    command = [sys.executable, "-m", __name__, str(streams), str(chunks), str(at_once)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield Address("127.0.0.1", int(process.stdout.readline()))
        finally:
            process.kill()


def serve(streams: int, chunks: int, at_once: int) -> None:
    """Answers once all connections have sent their requests; repeats forever."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=streams)
    print(listener.getsockname()[1], flush=True)
    while True:
        answer([listener.accept()[0] for _ in range(streams)], chunks, at_once)


def answer(connections: list[socket.socket], chunks: int, at_once: int) -> None:
    for connection in connections:
        connection.recv(1 << 16)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.sendall(HEAD)
    for first in range(0, chunks, at_once):
        data = CHUNK * min(at_once, chunks - first)
        for connection in connections:
            connection.sendall(data)
    for connection in connections:
        connection.sendall(END)
        connection.close()


if __name__ == "__main__":
    serve(*map(int, sys.argv[1:]))
