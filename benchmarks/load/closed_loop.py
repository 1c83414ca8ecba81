"""A load of many connections that each ask again when they are answered, where wrk may not be had.

A request costs it some 10 µs, several times what it costs wrk: for servers of a few thousand requests per second.
"""

from __future__ import annotations

import re
import select
import socket
import time
from collections.abc import Mapping
from contextlib import ExitStack

import click
import numpy as np

from benchmarks.load.client import Address
from benchmarks.load.result import Result

PATIENCE = 30.0
"""Seconds without any answer, after which the load is given up."""
LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)


class ClosedLoop:
    """Posts this body with these headers. Answers of the first `ramp` seconds do not count: batches fill then."""

    def __init__(self, body: bytes, headers: Mapping[str, str], *, ramp: float = 0.5) -> None:
        self._body, self._headers, self._ramp = body, headers, ramp

    def run(self, address: Address, path: str, *, connections: int, seconds: float) -> Result:
        """Raises click.ClickException when an answer was an error: such a rate says nothing."""
        lines = [f"POST {path} HTTP/1.1", f"Host: {address.host}", f"Content-Length: {len(self._body)}"]
        lines += [f"{name}: {value}" for name, value in {**self._headers, **address.authorization}.items()]
        request = "\r\n".join([*lines, "", ""]).encode() + self._body
        with ExitStack() as stack:
            asking = [stack.enter_context(_Line(address, request)) for _ in range(connections)]
            taken = _run({one.fileno(): one for one in asking}, self._ramp, seconds)
        if not taken:
            raise click.ClickException(f"{address.url} answered nothing in {seconds:g} s.")
        p50, p99 = (round(1e6 * one) for one in np.percentile(taken, (50, 99)))
        return Result(len(taken), round(seconds * 1e6), p50, p99, 0)


class _Line:
    """One connection, one request at a time."""

    def __init__(self, address: Address, request: bytes) -> None:
        self._socket = socket.create_connection((address.host, address.port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.fileno, self._request = self._socket.fileno, request
        self._reply, self._usual, self._sent = b"", 0, 0.0

    def __enter__(self) -> _Line:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def ask(self) -> None:
        self._sent = time.perf_counter()
        self._socket.sendall(self._request)

    def answered(self) -> float | None:
        """Read. Return the seconds of the request that is answered now, if it is, and ask again."""
        data = self._socket.recv(1 << 16)
        if not data:
            raise click.ClickException("The server closed a connection under load.")
        self._reply += data
        if len(self._reply) != self._usual and not self._complete():
            return None
        taken = time.perf_counter() - self._sent
        if not self._reply.startswith(b"HTTP/1.1 200"):
            raise click.ClickException(f"A request went wrong: {self._reply[:300]!r}")
        self._usual, self._reply = len(self._reply), b""
        self.ask()
        return taken

    def _complete(self) -> bool:
        head, end, body = self._reply.partition(b"\r\n\r\n")
        length = LENGTH.search(head)
        return bool(end) and len(body) >= (int(length[1]) if length else 0)


def _run(lines: Mapping[int, _Line], ramp: float, seconds: float) -> list[float]:
    """Return the seconds of each request that was answered in that time."""
    poll, taken = select.epoll(), list[float]()
    with poll:
        for fd, line in lines.items():
            poll.register(fd, select.EPOLLIN)
            line.ask()
        begins = time.perf_counter() + ramp
        ends = begins + seconds
        while (now := time.perf_counter()) < ends:
            ready = poll.poll(PATIENCE)
            if not ready:
                raise click.ClickException(f"The server answered nothing for {PATIENCE:g} s.")
            found = [one for fd, _ in ready if (one := lines[fd].answered()) is not None]
            taken += found if begins <= now else []
    return taken
