"""The load of connections that ask again when they are answered."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import click
import pytest

from benchmarks.load.client import Address
from benchmarks.load.closed_loop import ClosedLoop
from benchmarks.servers import trivial

HEADERS = {"Content-Type": "application/octet-stream"}


def test_each_connection_asks_until_the_end() -> None:
    with trivial.serve(128) as address:
        result = ClosedLoop(b"x" * 128, HEADERS, ramp=0.0).run(address, "/", connections=4, seconds=0.2)
    assert result.requests >= 4
    assert (result.micros, result.errors) == (200_000, 0)
    assert 0 < result.p50 <= result.p99 < 200_000


@contextmanager
def server(*pieces: bytes) -> Iterator[tuple[Address, list[bytes]]]:
    """A server of one connection, which answers each request by these pieces, and the requests."""
    asked: list[bytes] = []

    def answer() -> None:
        connection, _ = listener.accept()
        with connection, contextlib.suppress(ConnectionError):  # the load leaves in the middle of an answer
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            while data := connection.recv(1 << 16):
                asked.append(data)
                for piece in pieces:
                    connection.sendall(piece)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=answer)
        thread.start()
        yield Address("127.0.0.1", listener.getsockname()[1]), asked
        thread.join()


def test_an_answer_in_pieces_counts_once() -> None:
    with server(b"HTTP/1.1 200 OK\r\nContent-", b"Length: 4\r\n\r\nan", b"sw") as (address, asked):
        result = ClosedLoop(b"body", HEADERS, ramp=0.0).run(address, "/path", connections=1, seconds=0.1)
    assert len(asked) - 1 <= result.requests <= len(asked)
    head, _, body = asked[0].decode().partition("\r\n\r\n")
    lines = ["POST /path HTTP/1.1", "Host: 127.0.0.1", "Content-Length: 4", "Content-Type: application/octet-stream"]
    assert (head.split("\r\n"), body) == (lines, "body")


def test_an_error_ends_the_load() -> None:
    refused = b"HTTP/1.1 503 Busy\r\ncontent-length: 0\r\n\r\n"
    with server(refused) as (address, _), pytest.raises(click.ClickException, match="A request went wrong"):
        ClosedLoop(b"body", HEADERS).run(address, "/", connections=1, seconds=5)
