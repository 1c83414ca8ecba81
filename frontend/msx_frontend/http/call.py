"""One HTTP request as an ASGI server hands it over, and what its access line says."""

from __future__ import annotations

import time

from msx_frontend.http.head import Head
from msx_frontend.http.wire import Scope, request_id_of


class Call(Head):
    __slots__ = ("client", "id", "scope", "started")

    def __init__(self, scope: Scope) -> None:
        super().__init__(
            scope["method"],
            scope["path"],
            scope["raw_path"],
            scope["query_string"],
            scope["headers"],
            scope.get("http_version", "1.1"),
        )
        self.scope = scope
        self.started = time.monotonic()
        self.client = client_text(scope.get("client"))
        self.id = request_id_of(self.given_id)


def client_text(client: tuple[str, int] | None) -> str:
    """For log lines; over a Unix socket there is no client's address."""
    host, port = client or ("", 0)
    return f"{host}:{port}"
