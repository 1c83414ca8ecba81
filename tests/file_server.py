"""A web server of files, with the faults that archives are met with on their way."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class FileServer(ThreadingHTTPServer):
    """`routes` maps paths, without their queries, to what answers; anything else is 404."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.routes: dict[str, Callable[[BaseHTTPRequestHandler], None]] = {}
        self.asked: list[tuple[str, dict[str, str]]] = []
        """Path with its query, and the headers by their lower-case names, of every request."""

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients that leave are expected."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def put(self, path: str, data: bytes) -> str:
        self.routes[path] = lambda handler: _answer(handler, data)
        return self.url + path

    def redirect(self, path: str, location: str) -> str:
        self.routes[path] = lambda handler: _send_head(handler, 302, {"location": location, "content-length": "0"})
        return self.url + path

    def truncate(self, path: str, data: bytes) -> str:
        """Announces all of it, and sends half."""
        self.routes[path] = lambda handler: _answer(handler, data[: len(data) // 2], announced=len(data))
        return self.url + path

    def announce(self, path: str, size: int) -> str:
        """Says how much there is, and sends nothing."""
        self.routes[path] = lambda handler: _answer(handler, b"", announced=size)
        return self.url + path

    def endless(self, path: str) -> str:
        """Without a length, and without an end."""

        def pour(handler: BaseHTTPRequestHandler) -> None:
            _send_head(handler, 200, {})
            while True:
                handler.wfile.write(bytes(1 << 16))

        self.routes[path] = pour
        return self.url + path

    def hang(self, path: str, released: threading.Event) -> str:
        """Says nothing until it is `released`; then 404."""

        def wait(handler: BaseHTTPRequestHandler) -> None:
            released.wait(60)
            handler.send_error(404)

        self.routes[path] = wait
        return self.url + path


class _Handler(BaseHTTPRequestHandler):
    server: FileServer

    def do_GET(self) -> None:
        self.server.asked.append((self.path, {name.lower(): value for name, value in self.headers.items()}))
        route = self.server.routes.get(self.path.partition("?")[0])
        if route is None:
            self.send_error(404)
        else:
            route(self)

    def log_message(self, format: str, *args: object) -> None:
        """Not on stderr."""


def _send_head(handler: BaseHTTPRequestHandler, status: int, headers: dict[str, str]) -> None:
    handler.send_response(status)
    for name, value in headers.items():
        handler.send_header(name, value)
    handler.end_headers()


def _answer(handler: BaseHTTPRequestHandler, data: bytes, announced: int | None = None) -> None:
    _send_head(handler, 200, {"content-length": str(len(data) if announced is None else announced)})
    handler.wfile.write(data)


@contextmanager
def file_server() -> Iterator[FileServer]:
    server = FileServer()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
