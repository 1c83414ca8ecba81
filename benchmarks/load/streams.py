"""Many streams at once, read by a client that only counts: system calls, and a search for one byte."""

from __future__ import annotations

import json
import os
import resource
import select
import socket
import time
from contextlib import ExitStack
from dataclasses import dataclass, field

import click

from benchmarks.load.client import Address
from benchmarks.load.result import Result

EVENT = b"data: #23456789abcdef0\n\n"
MARK = b"#"
"""Each event has one of these bytes; the rest of an answer has none."""
END = b"0\r\n\r\n"
LIMIT = 60.0
"""Seconds without a byte from any stream."""
PAUSE = 0.005
"""Seconds between two rounds of reading: gathered data costs one system call, and servers keep the processor."""
FILES = 256
"""Open files that a server needs besides its streams."""


@dataclass
class StreamLoad:
    """A `Load` of `connections` streams of `chunks` events each, all at once. Times are those of their first events."""

    chunks: int
    cores: list[float] = field(default_factory=list)
    """The share of a core that this client used, by run."""

    def run(self, address: Address, path: str, *, connections: int, seconds: float) -> Result:
        """Repeats until `seconds` are over, at least once. Raises click.ClickException."""
        spent, firsts, processor = 0.0, list[float](), 0.0
        while spent < seconds:
            reader = read_streams(address, path, connections, self.chunks)
            spent, processor = spent + reader.seconds, processor + reader.processor
            firsts += reader.firsts.values()
        self.cores.append(processor / spent)
        firsts.sort()
        p50, p99 = (round(firsts[len(firsts) * percent // 100] * 1e6) for percent in (50, 99))
        return Result(len(firsts) * self.chunks, round(spent * 1e6), p50, p99, 0)


def read_streams(address: Address, path: str, streams: int, chunks: int) -> Reader:
    """Open the connections, then ask on all of them and read to the end. Raises click.ClickException."""
    with ExitStack() as stack:
        place = (address.host, address.port)
        connections = [stack.enter_context(socket.create_connection(place)) for _ in range(streams)]
        reader = Reader(chunks, stack.enter_context(select.epoll()))
        for connection in connections:
            reader.add(connection)
        reader.ask(connections, _request(address, path, chunks))
        return reader


def allow_files(streams: int, what: str = "streams") -> None:
    """Raise the limit of this process and the servers that it starts. Raises click.ClickException where that is
    forbidden.

    `what` is the name of the option that says how many.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = streams + FILES
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return
    if hard != resource.RLIM_INFINITY and hard < needed:
        raise click.ClickException(
            f"{streams} {what} need {needed} open files, and a process may have {hard} here: raise `ulimit -Hn`, or "
            f"take fewer --{what}."
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


@dataclass
class Reader:
    """Streams of `chunks` events, and when they came: seconds from the first request on."""

    chunks: int
    poll: select.epoll
    open: set[int] = field(default_factory=set)
    """Descriptors."""
    seen: dict[int, int] = field(default_factory=dict)
    """Descriptor to events; of those whose head has come."""
    firsts: dict[int, float] = field(default_factory=dict)
    tails: dict[int, bytes] = field(default_factory=dict)
    """The last bytes of those whose events have all come."""
    seconds: float = 0.0
    processor: float = 0.0
    """Seconds of this client's processor time."""

    def add(self, connection: socket.socket) -> None:
        self.poll.register(connection, select.EPOLLIN)
        self.open.add(connection.fileno())

    def ask(self, connections: list[socket.socket], request: bytes) -> None:
        """Raises click.ClickException for a stream that is refused, cut, silent, or not what was ordered."""
        processor, self._began = time.process_time(), time.perf_counter()
        for connection in connections:
            connection.sendall(request)
        while self.open:
            if not (ready := self.poll.poll(LIMIT)):
                raise click.ClickException(f"{len(self.open)} streams said nothing for {LIMIT:g} s.")
            for descriptor, _ in ready:
                self._read(descriptor)
            time.sleep(PAUSE)
        self.seconds = time.perf_counter() - self._began
        self.processor = time.process_time() - processor

    def _read(self, descriptor: int) -> None:
        data = os.read(descriptor, 1 << 16)
        if descriptor not in self.seen and not data.startswith(b"HTTP/1.1 200 "):
            raise click.ClickException(f"A stream was refused: {data[:500]!r}")
        before = self.seen.get(descriptor, 0)
        seen = self.seen[descriptor] = before + data.count(MARK)
        if seen and not before:
            self.firsts[descriptor] = time.perf_counter() - self._began
        if seen >= self.chunks and self._ended(descriptor, data):
            self.open.remove(descriptor)
            self.poll.unregister(descriptor)
        elif not data:
            raise click.ClickException(f"A stream was cut after {seen} of {self.chunks} events.")

    def _ended(self, descriptor: int, data: bytes) -> bool:
        tail = self.tails[descriptor] = (self.tails.get(descriptor, b"") + data)[-len(END) :]
        if tail == END and self.seen[descriptor] > self.chunks:
            raise click.ClickException(f"{self.seen[descriptor]} events came instead of {self.chunks}.")
        return tail == END


def _request(address: Address, path: str, chunks: int) -> bytes:
    body = json.dumps({"chunks": chunks})
    headers = {"Host": address.host, "Content-Type": "application/json", "Content-Length": str(len(body))}
    lines = "".join(f"{name}: {value}\r\n" for name, value in (headers | address.authorization).items())
    return f"POST {path} HTTP/1.1\r\n{lines}\r\n{body}".encode()
