"""Interface of uvicorn's `http=`: what a server passes to each HTTP/1.1 connection, and needs of it.

A connection is made with the keywords `config`, `server_state`, `app_state` and `_loop`. It adds itself to
`connections`, and its requests to `total_requests` and `tasks`; the server calls `shutdown()` when it stops.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any, Protocol

from msx_net.http.wire import RawHeaders


@dataclass
class ServerState:
    """Shared by all connections of a server. uvicorn's own has the same fields."""

    total_requests: int = 0
    connections: set[Any] = field(default_factory=set)
    tasks: set[asyncio.Task[None]] = field(default_factory=set)
    default_headers: RawHeaders = field(default_factory=list)
    """Headers of all replies, the date among them: a new list every second."""


class AppConfig(Protocol):
    @property
    def loaded(self) -> bool: ...

    def load(self) -> None: ...

    @property
    def loaded_app(self) -> Any:
        """The ASGI app, once `load` was called."""
