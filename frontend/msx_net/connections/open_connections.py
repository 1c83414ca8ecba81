"""The connections of a server, over all its listeners: how many there may be, and which end when there are too many."""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import logging
import os
from collections.abc import Callable, Iterator
from math import inf
from typing import Any

from msx_net.connections import sweep
from msx_net.connections.connection import ON_ITS_WAY, Connection
from msx_net.connections.descriptors import MOST_CONNECTIONS, Descriptors

log = logging.getLogger("msx.connections")

RETRY = 0.1
"""Seconds until accepting is tried again where it was not possible. Those that were asked to end are gone then."""

SHARE = 50
"""One of so many connections ends at the limit, at least one: to find the longest idle, all have to be looked at."""

SAY_EVERY = 60.0
"""Seconds between two log lines about the limit."""


class ListenerConnections(set[Connection]):
    """Connections of one listener. One adds itself when it is made, and discards itself when it is lost."""

    def __init__(self, of_server: OpenConnections | None = None, listener: str = "") -> None:
        super().__init__()
        self.listener = listener
        self.of_server = of_server or OpenConnections()
        self.of_server.listeners.append(self)
        self.ending = False
        """Whether a new connection shuts down at once."""
        self.on_its_way = ON_ITS_WAY
        """Seconds for which requests may be on their way when the connections end."""
        self._emptied: asyncio.Event | None = None

    def add(self, connection: Connection) -> None:
        super().add(connection)
        self.of_server.opened()
        if self.ending:
            connection.shutdown(self.on_its_way)

    def discard(self, connection: object) -> None:
        super().discard(connection)
        self.of_server.closed(connection)
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
    """Connections of all listeners: at most `limit`, or as many as there are descriptors for."""

    def __init__(self, descriptors: Descriptors | None = None, limit: int | None = None) -> None:
        descriptors = descriptors or Descriptors.of_process()
        self._descriptors, self._most_descriptors = descriptors.limit, descriptors.most_used
        self.limit = min(limit or MOST_CONNECTIONS, descriptors.for_connections)
        self.listeners: list[ListenerConnections] = []
        self.connecting = 0
        """Connections that are accepted and have not added themselves yet."""
        self.shed = 0
        """How many were closed because there were too many, since the start."""
        self._leaving: set[Connection] = set()
        """They were asked to end, because there are too many."""
        self._scarce = False
        """The last connection took one of the last descriptors."""
        self._waiting: list[Callable[[], None]] = []
        """Callbacks of those who accept again when there is room."""
        self._retry: asyncio.TimerHandle | None = None
        self._said = -SAY_EVERY
        self._sweep = sweep.Sweep(self.all, sweep.EVERY)

    @property
    def count(self) -> int:
        return sum(map(len, self.listeners)) + self.connecting

    @property
    def full(self) -> bool:
        return self._scarce or self.count >= self.limit

    def by_listener(self) -> list[tuple[str, int]]:
        return [(connections.listener, len(connections)) for connections in self.listeners]

    def all(self) -> Iterator[Connection]:
        for connections in self.listeners:
            yield from list(connections)

    def accepted(self, descriptor: int) -> None:
        """The lowest descriptor is taken first: its number says how many there are."""
        self._scarce = descriptor >= self._most_descriptors

    def opened(self) -> None:
        self._sweep.start()

    def closed(self, connection: Any) -> None:
        if self._waiting:
            self._leaving.discard(connection)
            asyncio.get_running_loop().call_soon(self._look_again)  # its descriptor is free then

    def wait_for_room(self, accept_again: Callable[[], None], reason: str = "") -> None:
        """Accepting has stopped, because it is full, or for this reason. The longest idle connections end."""
        self._waiting.append(accept_again)
        if not self._leaving:
            self._shed()
        if self._retry is None:
            loop = asyncio.get_running_loop()
            self._say(loop.time(), reason)
            self._retry = loop.call_later(RETRY, self._try_again)

    def _shed(self) -> None:
        youngest = asyncio.get_running_loop().time() - RETRY  # what has come of the others' requests has been read
        idle = [(since, id(one), one) for one in self.all() if (since := one.idle_since or inf) <= youngest]
        self._leaving = {one for *_, one in heapq.nsmallest(max(1, len(idle) // SHARE), idle)}
        self.shed += len(self._leaving)
        for connection in self._leaving.copy():
            connection.shutdown()

    def _try_again(self) -> None:
        self._retry = None
        leaving, self._leaving = self._leaving, set()
        for connection in leaving:
            connection.abort()
        if not leaving and self.full:
            self._shed()
        self._look_again()
        if self._waiting:
            self._retry = asyncio.get_running_loop().call_later(RETRY, self._try_again)

    def _look_again(self) -> None:
        self._scarce = self._scarce and _next_descriptor() >= self._most_descriptors
        if not self.full:
            waiting, self._waiting = self._waiting, []
            for accept_again in waiting:
                accept_again()

    def _say(self, now: float, reason: str) -> None:
        if now - self._said >= SAY_EVERY:
            self._said = now
            log.warning(
                "No more connections are accepted until others end, and the longest idle are closed: %s",
                reason
                or f"{self.count} are open, and the server may have {self.limit} (max_connections), or as many as "
                f"leave it some of its {self._descriptors} descriptors (ulimit -n)",
            )


def _next_descriptor() -> int:
    """The number that the next file or connection would have."""
    try:
        number = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return 1 << 30
    os.close(number)
    return number
