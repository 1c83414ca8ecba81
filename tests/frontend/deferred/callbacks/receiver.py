"""A receiver of callbacks that notes them, and answers as it is told."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple

SECRET = "whsec_" + "c2VjcmV0IG9mIHRoZSB0ZXN0cywgMzIgYnl0ZXMgbG9uZw=="


class Received(NamedTuple):
    path: str
    headers: dict[str, str]
    body: bytes


class Receiver(ThreadingHTTPServer):
    """`statuses` are those of the next responses, the last of them of all further ones; 0 answers nothing until the
    receiver is closed."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.statuses = [200]
        self.headers: dict[str, str] = {}
        self.got: list[Received] = []
        self.closed = threading.Event()

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients that leave are expected."""

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.server_address[1]}"

    @property
    def url(self) -> str:
        return f"http://{self.host}/hook"


class _Handler(BaseHTTPRequestHandler):
    server: Receiver

    def log_message(self, format: str, *values: object) -> None:
        pass

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        receiver = self.server
        status = receiver.statuses.pop(0) if len(receiver.statuses) > 1 else receiver.statuses[0]
        receiver.got.append(Received(self.path, {name.lower(): text for name, text in self.headers.items()}, body))
        if not status:
            receiver.closed.wait(30)
            return
        self.send_response(status)
        for name, text in receiver.headers.items():
            self.send_header(name, text)
        self.end_headers()


@contextmanager
def receiver() -> Iterator[Receiver]:
    server = Receiver()
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.closed.set()
        server.shutdown()
        server.server_close()
        thread.join()
