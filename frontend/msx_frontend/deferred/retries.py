"""Jobs that found no room, until they are tried again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from msx_frontend.deferred.entry import Entry

MOST_TRIES = 100
"""A second, of all jobs together: each reads its request from the disk."""


class Retries:
    """`queue` is called with each job whose time has come."""

    def __init__(self, queue: Callable[[Entry], None]) -> None:
        self._queue = queue
        self._count = 0
        self._paths: dict[str, dict[Entry, asyncio.TimerHandle]] = {}

    def add(self, entry: Entry, wait: float) -> None:
        """`wait`: the fewest seconds. It is longer where so many wait that there were more than MOST_TRIES."""
        later = max(wait, self._count / MOST_TRIES)
        timer = asyncio.get_running_loop().call_later(later, self._begin, entry)
        self._paths.setdefault(entry.head.path, {})[entry] = timer
        self._count += 1

    def answered(self, path: str) -> None:
        """A job of this path had room: the one that has waited longest for it is tried at once."""
        if waiting := self._paths.get(path):
            self._begin(next(iter(waiting)))

    def drop(self, entry: Entry) -> None:
        """One that does not wait here is not an error."""
        waiting = self._paths.get(entry.head.path, {})
        if (timer := waiting.pop(entry, None)) is not None:
            timer.cancel()
            self._count -= 1
            if not waiting:
                del self._paths[entry.head.path]

    def _begin(self, entry: Entry) -> None:
        self.drop(entry)
        self._queue(entry)
