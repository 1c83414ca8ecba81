"""`python -m tests.long.new_connections HOST:PORT PATH`: a client with a new connection for each request, until its
stdin ends; then it prints how it went. A process of its own, which waits for no other client's thread."""

from __future__ import annotations

import collections
import http.client
import json
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

PAUSE = 0.02


class NewConnections:
    """`answers`, `longest` wait in s, and `errors` by their kinds, once it has ended."""

    def __init__(self, address: str, path: str) -> None:
        command = [sys.executable, "-m", "tests.long.new_connections", address, path]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.answers, self.longest, self.errors = 0, 0.0, dict[str, int]()

    def end(self) -> None:
        if self._process.poll() is None:
            told, _ = self._process.communicate()
            self.answers, self.longest, self.errors = json.loads(told)


@contextmanager
def new_connections(address: str, path: str) -> Iterator[NewConnections]:
    one = NewConnections(address, path)
    try:
        yield one
    finally:
        one.end()


def main(address: str, path: str) -> None:
    answers, longest, errors = 0, 0.0, collections.Counter[str]()
    while not select.select([sys.stdin], [], [], PAUSE)[0]:
        began = time.monotonic()
        try:
            ask(address, path)
            answers += 1
        except (OSError, http.client.HTTPException, AssertionError) as error:
            errors[type(error).__name__] += 1
        longest = max(longest, time.monotonic() - began)
    print(json.dumps([answers, longest, errors]))


def ask(address: str, path: str) -> None:
    connection = http.client.HTTPConnection(address, timeout=60)
    try:
        connection.request("POST", path, b"x")
        assert connection.getresponse().read() == b"x"
    finally:
        connection.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
