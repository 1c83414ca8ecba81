"""A collector of spans that throws them away, in a process of its own: what is measured is who sends them."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.connection import Connection

START_LIMIT = 30.0
"""Seconds for the process to start, and to end when it is told to."""


class _Takes(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None: ...


def _collect(told: Connection) -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Takes)
    told.send(server.server_port)
    server.serve_forever()


@contextmanager
def collector(collect: Callable[[Connection], None] = _collect) -> Iterator[str]:
    """Its endpoint. Raises RuntimeError if the process ends, or says nothing, before it listens."""
    here, there = multiprocessing.get_context("spawn").Pipe(duplex=False)
    process = multiprocessing.get_context("spawn").Process(target=collect, args=(there,), daemon=True)
    process.start()
    there.close()  # else the end of the process would not be the end of what is read
    try:
        yield f"http://127.0.0.1:{_port(here)}"
    finally:
        process.terminate()
        process.join(START_LIMIT)
        process.kill()
        process.join()
        here.close()


def _port(told: Connection) -> int:
    if not told.poll(START_LIMIT):
        raise RuntimeError(f"the collector of spans did not listen within {START_LIMIT:g} s; is the machine busy?")
    try:
        return int(told.recv())
    except EOFError:
        raise RuntimeError("the collector of spans ended before it listened; its error is above") from None
