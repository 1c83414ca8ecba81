"""Browsers that look at the console, without the browsers: connections that read its event stream."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import click

LIMIT = 10.0
"""Seconds until a stream has begun."""


@contextmanager
def consoles(management: str, count: int) -> Iterator[None]:
    """So many streams, read as they come. `management` is the URL of a listener that asks for no key.

    Raises click.ClickException when a stream does not begin.
    """
    opened = [_open(management) for _ in range(count)]
    threads = [threading.Thread(target=_read, args=(one,), daemon=True) for one in opened]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        for one in opened:
            one.shutdown(socket.SHUT_RDWR)
            one.close()
        for thread in threads:
            thread.join()


def _open(management: str) -> socket.socket:
    parts = urlsplit(management)
    made = socket.create_connection((parts.hostname or "", parts.port or 80), LIMIT)
    made.sendall(f"GET /console/events HTTP/1.1\r\nHost: {parts.netloc}\r\n\r\n".encode())
    if not made.recv(1 << 16).startswith(b"HTTP/1.1 200"):
        raise click.ClickException("The server does not show itself to a console.")
    made.settimeout(None)
    return made


def _read(stream: socket.socket) -> None:
    try:
        while stream.recv(1 << 16):
            continue
    except OSError:
        return
