"""One HTTP request as an ASGI server hands it over, and what its access line says."""

from __future__ import annotations

import time
from typing import Any

from msx_net.http.head import Head
from msx_net.http.wire import Scope, request_id_of
from msx_net.keys import ClientKey


class AsgiRequest(Head):
    __slots__ = ("client", "id", "key", "scope", "started")

    def __init__(self, scope: Scope) -> None:
        super().__init__(
            scope["method"],
            scope["path"].rstrip("/") or "/",
            scope["raw_path"],
            scope["query_string"],
            scope["headers"],
            scope.get("http_version", "1.1"),
        )
        self.scope = scope
        self.started = time.monotonic()
        self.client = client_text(scope.get("client"))
        self.id = request_id_of(self.given_id)
        self.key: ClientKey | None = None
        """The key that opened the route. None where the route is public, or before the key was checked."""

    @property
    def key_name(self) -> str:
        """Name for the access log; empty for a key without a name."""
        return "" if self.key is None else self.key.name

    @property
    def limited_key(self) -> ClientKey | None:
        """The key, if it is good for some models only."""
        return self.key if self.key is not None and self.key.models is not None else None

    def use(self, key: ClientKey | None) -> None:
        """Count the request against the rate of its key. Raises TooManyRequests."""
        self.key = key
        if key is not None:
            key.take()

    def check_model(self, model: str) -> None:
        """Raises ModelNotAllowed."""
        if self.key is not None:
            self.key.check_model(model)

    def may_use(self, model: str) -> bool:
        """Whether a list may show this model."""
        return self.key is None or self.key.allows(model)


SocketAddress = tuple[str, int] | None
"""Host and port of one end of a connection; None for a Unix socket's, which has none."""


def socket_address(named: Any) -> SocketAddress:
    """`named` by a transport; IPv6 has four fields."""
    return (str(named[0]), int(named[1])) if isinstance(named, list | tuple) and len(named) >= 2 else None


def client_text(client: SocketAddress) -> str:
    """The client's address for log lines; over a Unix socket it is empty."""
    host, port = client or ("", 0)
    return f"{host}:{port}"
