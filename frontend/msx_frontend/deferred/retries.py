"""Jobs that found no room, until they are tried again: owners take turns."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable

from msx_frontend.deferred.entry import Entry

MOST_TRIES = 100
"""A second, of all jobs together: each reads its request from the disk."""

Timers = OrderedDict[Entry, asyncio.TimerHandle]


class Retries:
    """`queue` is called with each job whose time has come."""

    def __init__(self, queue: Callable[[Entry], None]) -> None:
        self._queue = queue
        self._counts: dict[str, int] = {}
        """Jobs that wait, by owner."""
        self._paths: dict[str, OrderedDict[str, Timers]] = {}
        """Timers by path and owner."""

    def add(self, entry: Entry, wait: float) -> None:
        """`wait`: the fewest seconds. It is longer where so many of its owner wait that there were more than
        MOST_TRIES, which owners share."""
        count = self._counts.get(entry.owner, 0)
        self._counts[entry.owner] = count + 1
        later = max(wait, count * len(self._counts) / MOST_TRIES)
        timer = asyncio.get_running_loop().call_later(later, self._begin, entry)
        self._paths.setdefault(entry.head.path, OrderedDict()).setdefault(entry.owner, OrderedDict())[entry] = timer

    def answered(self, path: str) -> None:
        """A job of this path had room: the one that has waited longest for it, of the owner whose turn it is, is
        tried at once."""
        if owners := self._paths.get(path):
            owner, waiting = next(iter(owners.items()))
            owners.move_to_end(owner)
            self._begin(next(iter(waiting)))

    def drop(self, entry: Entry) -> None:
        """One that does not wait here is not an error."""
        owners = self._paths.get(entry.head.path, OrderedDict())
        waiting = owners.get(entry.owner, OrderedDict())
        if (timer := waiting.pop(entry, None)) is None:
            return
        timer.cancel()
        self._count_down(entry.owner)
        if not waiting:
            del owners[entry.owner]
        if not owners:
            del self._paths[entry.head.path]

    def _count_down(self, owner: str) -> None:
        self._counts[owner] -= 1
        if not self._counts[owner]:
            del self._counts[owner]

    def _begin(self, entry: Entry) -> None:
        self.drop(entry)
        self._queue(entry)
