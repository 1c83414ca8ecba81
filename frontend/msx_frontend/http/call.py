"""One HTTP request, read once: the few headers that steer it, and what its access line says."""

from __future__ import annotations

import time
from collections.abc import Iterator

from msx_frontend.http.wire import Scope, request_id_of


class Call:
    __slots__ = (
        "authorization",
        "content_length",
        "content_type",
        "id",
        "keeps_alive",
        "method",
        "path",
        "query",
        "scope",
        "started",
    )

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.started = time.monotonic()
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        self.query: bytes = scope["query_string"]
        self.content_type = b""
        self.content_length: int | None = None
        self.authorization: str | None = None
        self.keeps_alive: bool = scope.get("http_version") != "1.0"
        given_id = None
        for name, value in scope["headers"]:
            if name == b"content-type":
                self.content_type = value
            elif name == b"content-length" and value.isdigit():
                self.content_length = int(value)
            elif name == b"authorization":
                self.authorization = value.decode("latin-1")
            elif name == b"connection":
                self.keeps_alive = self.keeps_alive and b"close" not in value.lower()
            elif name == b"x-request-id":
                given_id = value
        self.id = request_id_of(given_id)

    def headers(self) -> Iterator[tuple[str, str]]:
        for name, value in self.scope["headers"]:
            yield name.decode("latin-1"), value.decode("latin-1")

    @property
    def client(self) -> str:
        host, port = self.scope.get("client") or ("", 0)
        return f"{host}:{port}"

    @property
    def target(self) -> str:
        """As it was sent: percent-encoded, so that no line feed in it ends a line of the access log."""
        path: str = self.scope["raw_path"].decode("latin-1")
        return f"{path}?{self.query.decode('latin-1')}" if self.query else path

    @property
    def protocol(self) -> str:
        return f"HTTP/{self.scope['http_version']}"
