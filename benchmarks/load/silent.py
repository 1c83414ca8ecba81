"""Connections that say nothing."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import click

from benchmarks.load.client import Address

LIMIT = 5.0
"""Seconds for an answer."""


@contextmanager
def silent_connections(address: Address, count: int) -> Iterator[list[socket.socket]]:
    """Each has had a request answered, so that the server waits for the next one. Raises click.ClickException."""
    with ExitStack() as stack:
        place = (address.host, address.port)
        found = [stack.enter_context(socket.create_connection(place, LIMIT)) for _ in range(count)]
        request = f"GET / HTTP/1.1\r\nHost: {address.host}\r\n\r\n".encode()
        for connection in found:
            connection.sendall(request)
        for connection in found:
            _expect_answer(connection)
        yield found


def _expect_answer(connection: socket.socket) -> None:
    """Whatever its status is: it is small, and comes in one piece."""
    try:
        begun = connection.recv(1 << 16).startswith(b"HTTP/1.1 ")
    except OSError:
        begun = False
    if not begun:
        raise click.ClickException("A server did not answer a request on a connection that was to fall silent.")
