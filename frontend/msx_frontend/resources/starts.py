"""Which worker groups start now: a few at once, and each only where there is memory for it."""

import asyncio
from collections.abc import Callable

from msx_core.cgroup import memory_available
from msx_frontend.resources.shortage import Shortage

MARGIN = 1.2
"""A start needs so many times the memory of a sibling: loading takes more than serving."""

REMEDY = "it starts when there are: ask for fewer workers, or give the server more memory"

LOOK = 1.0
"""Seconds between two looks at the memory while a start waits for it."""

Bytes = Callable[[], int]
Sibling = Callable[[], int | None]
"""The memory that another worker of the version takes, in bytes; None where none serves."""


class Start:
    """One start of one group. `taken` gives its memory by now; `on_shortage` is called with what it lacks, or None."""

    def __init__(
        self, model_key: str, sibling: Sibling, taken: Bytes, on_shortage: Callable[[Shortage | None], None]
    ) -> None:
        self.model_key, self.sibling, self.taken, self.on_shortage = model_key, sibling, taken, on_shortage
        self.needs = 0
        self.turn = asyncio.Event()


class Starts:
    """Starts in the order of asking, but for those that lack memory: `limit` groups at once, each with all its
    ranks."""

    def __init__(self, limit: int, available: Bytes = memory_available) -> None:
        self.limit, self._available = limit, available
        self._waiting: list[Start] = []
        self._running: list[Start] = []
        self._soon: asyncio.Handle | None = None

    def ask(self, start: Start) -> None:
        """`start.turn` is set when it may begin. The caller calls `end` in any case."""
        self._waiting.append(start)
        self._serve_soon()

    def end(self, start: Start) -> None:
        """The start has ended, or is not wanted any more."""
        for place in (self._waiting, self._running):
            if start in place:
                place.remove(start)
        self._serve_soon()

    def _serve_soon(self) -> None:
        """Once for all that ask in one turn of the loop: reading the memory takes time."""
        if self._soon is not None:
            self._soon.cancel()
        self._soon = asyncio.get_running_loop().call_soon(self._serve) if self._waiting else None

    def _serve(self) -> None:
        self._soon = None
        known: dict[Sibling, int | None] = {}
        free = self._free() if self._waiting and len(self._running) < self.limit else 0
        for start in list(self._waiting):
            if len(self._running) >= self.limit:
                return  # the end of one of them looks again
            if start.sibling not in known:
                known[start.sibling] = start.sibling()
            start.needs = int(MARGIN * (known[start.sibling] or 0))
            if start.needs > free:
                start.on_shortage(self._shortage(start, free))
            else:
                free -= start.needs
                self._begin(start)
        if self._waiting:
            self._soon = asyncio.get_running_loop().call_later(LOOK, self._serve)

    def _free(self) -> int:
        """Bytes that are available, less what running starts will still take."""
        return self._available() - sum(max(start.needs - start.taken(), 0) for start in self._running)

    def _begin(self, start: Start) -> None:
        self._waiting.remove(start)
        self._running.append(start)
        start.turn.set()
        start.on_shortage(None)

    def _shortage(self, start: Start, free: int) -> Shortage:
        needs = f"{start.model_key} needs {_mb(start.needs)} of memory, {MARGIN} times what a worker of it takes"
        starting = ", beside what those that start now will take" if self._running else ""
        return Shortage("memory", f"{needs}, and {_mb(max(free, 0))} are available{starting}; {REMEDY}")


def _mb(number: int) -> str:
    return f"{number / 1e6:.0f} MB"
