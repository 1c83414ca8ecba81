"""How many connections a server has, over all its listeners."""

from __future__ import annotations

import asyncio
import contextlib

from msx_frontend.net.connections.connection import Connection


class ListenerConnections(set[Connection]):
    """Those of one listener. A connection adds itself when it is made, and discards itself when it is lost."""

    def __init__(self, of_server: OpenConnections | None = None) -> None:
        super().__init__()
        (of_server or OpenConnections()).listeners.append(self)
        self._emptied: asyncio.Event | None = None

    def discard(self, connection: object) -> None:
        super().discard(connection)
        if self._emptied is not None and not self:
            self._emptied.set()

    async def until_empty(self, seconds: float) -> bool:
        """Returns whether they are gone, after `seconds` at most."""
        if self:
            self._emptied = asyncio.Event()
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._emptied.wait(), seconds)
        return not self


class OpenConnections:
    """Those of all listeners of a server."""

    def __init__(self) -> None:
        self.listeners: list[ListenerConnections] = []

    @property
    def count(self) -> int:
        return sum(map(len, self.listeners))
