"""One job that has not ended, in memory."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from msx_frontend.deferred.records import JobHead
from msx_frontend.deferred.tries import Tries

if TYPE_CHECKING:
    from msx_frontend.deferred.sink import LateSink


class Entry:
    """`created` is in seconds since the epoch."""

    __slots__ = ("_changed", "_writing", "created", "head", "id", "number", "owner", "sink", "tries")

    def __init__(self, id: str, owner: str, created: float, head: JobHead) -> None:
        self.id, self.owner, self.created, self.head = id, owner, created, head
        self.number = 0
        """Counts the jobs of its lane, in the order in which they wait."""
        self.sink: LateSink | None = None
        self.tries = Tries()
        self._writing: asyncio.Lock | None = None
        self._changed: asyncio.Event | None = None
        """Both are made when they are needed: a server may take up many jobs at its start."""

    @property
    def writing(self) -> asyncio.Lock:
        """Held while its end is written: one end is not written over another."""
        self._writing = self._writing or asyncio.Lock()
        return self._writing

    @property
    def lane(self) -> str:
        """Jobs of one owner take turns with those of others."""
        return self.owner

    @property
    def is_open(self) -> bool:
        return self.head.state in ("queued", "running")

    def changed(self) -> None:
        """Wake those who wait."""
        waited, self._changed = self._changed, None
        if waited is not None:
            waited.set()

    async def wait(self) -> None:
        """Returns at the next change."""
        self._changed = self._changed or asyncio.Event()
        await self._changed.wait()
