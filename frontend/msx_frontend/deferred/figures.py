"""Figures of jobs, for metrics."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from msx_frontend.deferred.entry import Entry
from msx_frontend.deferred.records import JobHead
from msx_frontend.store.records import Records


class JobFigures(NamedTuple):
    queued: int
    running: int
    ended: Mapping[str, int]
    """Jobs that have ended since the start, as `done`, `failed` and `cancelled`."""
    oldest: float
    """Seconds since the oldest job was accepted that has not ended; 0 without one."""
    size: int
    """Bytes of the store's files."""
    callbacks: int
    """Callbacks whose jobs have not ended, or which were not taken yet."""
    tries: Mapping[str, int]
    """Tries of callbacks, by what became of them."""


class EndCounts:
    """Listens to the ends of jobs (EndListener)."""

    def __init__(self) -> None:
        self.counts = Counter({"done": 0, "failed": 0, "cancelled": 0})

    def added(self, entry: Entry) -> None:
        pass

    def ending(self, records: Records, entry: Entry, head: JobHead, expires: float) -> None:
        pass

    def ended(self, entry: Entry) -> None:
        head = entry.head
        self.counts["failed" if head.state == "done" and (head.status or 0) >= 400 else head.state] += 1


def size_of(path: Path) -> int:
    """Bytes of a database, with its log."""
    found = 0
    for file in (path, Path(f"{path}-wal")):
        with suppress(OSError):
            found += os.stat(file).st_size
    return found
