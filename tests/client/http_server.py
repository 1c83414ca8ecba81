"""A server that gives each connection's request the next answer of a list, and tells what it was asked."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import NamedTuple


class Answer(NamedTuple):
    status: int = 200
    content: bytes = b'"done"'
    headers: tuple[tuple[str, str], ...] = (("content-type", "application/json"),)
    cut: bool = False
    """The connection ends one byte before the content does."""


class Asked:
    def __init__(self, url: str) -> None:
        self.url = url
        self.keys: list[str | None] = []


@contextmanager
def http_server(*answers: Answer) -> Iterator[Asked]:
    waiting = list(answers)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("content-length", 0)))
            asked.keys.append(self.headers.get("authorization"))
            answer = waiting.pop(0)
            self.send_response(answer.status)
            for name, value in answer.headers:
                self.send_header(name, value)
            self.send_header("content-length", str(len(answer.content)))
            self.end_headers()
            self.wfile.write(answer.content[: len(answer.content) - answer.cut])
            self.close_connection = answer.cut

        def log_message(self, format: str, *args: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        asked = Asked(f"http://127.0.0.1:{server.server_address[1]}")
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield asked
        finally:
            server.shutdown()
            thread.join()
