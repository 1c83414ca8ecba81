"""A client in a process of its own that sends each request when it is due, even if earlier ones are not answered yet.

A request's time is counted from the instant at which it was due: where a server, or this client, is late, it shows.
Each load comes as a line of JSON on stdin, and its outcome goes as one to stdout.
"""

from __future__ import annotations

import contextlib
import gc
import select
import socket
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

import click
import httptools
import msgspec

from benchmarks.load.client import Address

CONNECTIONS = 400
"""The most at once. A request that finds no free one waits, which counts. select() takes no more than 1,024 files."""
SPARE = 30.0
"""Seconds after the last deadline, until the client process itself is killed."""
ROOT = Path(__file__).parents[2]


class OpenLoad(msgspec.Struct):
    """`due` in seconds from the first; what is not answered `patience` seconds after the last is due has failed."""

    host: str
    port: int
    request: bytes
    due: list[float]
    patience: float


class Outcome(msgspec.Struct):
    """Seconds; of each request that was answered by 200 how long it took."""

    taken: list[float]
    failed: int
    late: float
    """p99 of how late the client itself sent a request, which is in `taken`."""
    processor: float
    """The share of one core that the client used."""
    seconds: float
    """Seconds from the first due time to the last answer, or to the last deadline."""


class Line:
    """One connection, one request at a time."""

    def __init__(self, load: OpenLoad) -> None:
        self.socket = socket.create_connection((load.host, load.port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._request = load.request
        self._parser = httptools.HttpResponseParser(self)
        self.due = 0.0
        self.ended = False

    def send(self, due: float) -> None:
        self.due, self.ended = due, False
        self.socket.sendall(self._request)

    def receive(self) -> bool:
        """Whether the answer has come. Raises ConnectionError when it cannot come any more."""
        data = self.socket.recv(1 << 16)
        if not data:
            raise ConnectionResetError
        self._parser.feed_data(data)
        return self.ended

    @property
    def good(self) -> bool:
        return bool(self._parser.get_status_code() == 200)

    def on_message_complete(self) -> None:
        self.ended = True


class Client:
    def __init__(self, load: OpenLoad) -> None:
        self._load = load
        self._free = [Line(load) for _ in range(min(len(load.due), 32))]
        self._opened = len(self._free)
        self._busy: dict[socket.socket, Line] = {}
        self._waiting: deque[float] = deque()
        self._late: list[float] = []
        self.taken: list[float] = []
        self.failed = 0

    def run(self) -> Outcome:
        due, sent = self._load.due, 0
        began, used = time.perf_counter() + 0.01, time.process_time()
        deadline = due[-1] + self._load.patience
        while len(self.taken) + self.failed < len(due) and (now := time.perf_counter() - began) < deadline:
            while sent < len(due) and due[sent] <= now:
                self._waiting.append(due[sent])
                self._late.append(now - due[sent])
                sent += 1
            self._send()
            self._receive(began, (due[sent] if sent < len(due) else deadline) - (time.perf_counter() - began))
        self._late.sort()
        late = self._late[int(len(self._late) * 0.99)] if self._late else 0.0
        seconds = time.perf_counter() - began
        for line in (*self._free, *self._busy.values()):
            line.socket.close()
        return Outcome(self.taken, len(due) - len(self.taken), late, (time.process_time() - used) / seconds, seconds)

    def _send(self) -> None:
        while self._waiting and (line := self._line()) is not None:
            line.send(self._waiting.popleft())
            self._busy[line.socket] = line

    def _line(self) -> Line | None:
        if self._free:
            return self._free.pop()
        if self._opened >= CONNECTIONS:
            return None
        self._opened += 1
        return Line(self._load)

    def _receive(self, began: float, limit: float) -> None:
        for readable in select.select([*self._busy], [], [], max(limit, 0.0))[0]:
            line = self._busy[readable]
            try:
                if not line.receive():
                    continue
            except (ConnectionError, httptools.HttpParserError):
                self._opened -= 1
                self.failed += 1
            else:
                self._free.append(line)
                if line.good:
                    self.taken.append(time.perf_counter() - began - line.due)
                else:
                    self.failed += 1
            del self._busy[readable]


class OpenLoop:
    """The client's process; it takes any number of loads, one after the other."""

    def __enter__(self) -> OpenLoop:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.load.open_loop"], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.communicate()

    def run(self, address: Address, path: str, body: bytes, due: Sequence[float], patience: float) -> Outcome:
        """Raises click.ClickException when the client itself fails."""
        load = OpenLoad(address.host, address.port, _request(address, path, body), [*due], patience)
        watchdog = threading.Timer(due[-1] + patience + SPARE, self._process.kill)
        watchdog.start()
        try:
            return msgspec.json.decode(self._answer(msgspec.json.encode(load)), type=Outcome)
        except (OSError, msgspec.DecodeError):
            raise click.ClickException("The client of the benchmark failed; see above.") from None
        finally:
            watchdog.cancel()

    def _answer(self, load: bytes) -> bytes:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(load + b"\n")
        self._process.stdin.flush()
        return self._process.stdout.readline()


def _request(address: Address, path: str, body: bytes) -> bytes:
    headers = {"Host": address.host, "Content-Type": "application/octet-stream", "Content-Length": str(len(body))}
    lines = "".join(f"{name}: {value}\r\n" for name, value in (headers | address.authorization).items())
    return f"POST {path} HTTP/1.1\r\n{lines}\r\n".encode() + body


def _serve() -> None:
    for line in sys.stdin.buffer:
        outcome = Client(msgspec.json.decode(line, type=OpenLoad)).run()
        sys.stdout.buffer.write(msgspec.json.encode(outcome) + b"\n")
        sys.stdout.buffer.flush()
        gc.collect()


if __name__ == "__main__":
    gc.disable()  # but between two orders
    with contextlib.suppress(KeyboardInterrupt):
        _serve()
