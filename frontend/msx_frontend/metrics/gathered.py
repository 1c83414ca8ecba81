"""What has ended, gathered: adding up many at a time is cheaper by half than adding each."""

from __future__ import annotations

from collections import defaultdict
from typing import Protocol, TypeVar

MOST = 256
"""They are added up in a few tenths of a millisecond."""

Ended = tuple[tuple["CountsJobs", "str | None", int, str], float, float, float, float]
"""A job: of which metrics, the version that was asked for, status and kind; when it was queued, taken by a worker (or
0.0), answered first (or 0.0), and ended, as `time.monotonic()` instants."""

Batch = tuple[tuple["CountsJobs", int], float, float]
"""Of which metrics and how many jobs; seconds of the worker, and those until it began."""

Entry = TypeVar("Entry", Ended, Batch)


class CountsJobs(Protocol):
    """The metrics of one model version."""

    def add_jobs(self, version: str | None, status: int, kind: str, jobs: list[Ended]) -> None:
        """Of one version asked for, one status and one kind."""

    def add_batches(self, size: int, batches: list[Batch]) -> None:
        """Of one size."""


class PendingCounts:
    """Of all models together, so that many models make no long work of a scrape.

    Used on the loop's thread. Call `settle` before reading a count.
    """

    def __init__(self, most: int = MOST) -> None:
        self.most = most
        self.jobs: list[Ended] = []
        self.batches: list[Batch] = []

    def settle(self) -> None:
        jobs, batches = self.jobs[:], self.batches[:]
        self.jobs.clear()
        self.batches.clear()
        for ended in _by_first(jobs):
            metrics, version, status, kind = ended[0][0]
            metrics.add_jobs(version, status, kind, ended)
        for done in _by_first(batches):
            metrics, size = done[0][0]
            metrics.add_batches(size, done)


def _by_first(entries: list[Entry]) -> list[list[Entry]]:
    """Those with the same first member together; last the group with the last entry, for gauges."""
    if len({entry[0] for entry in entries}) < 2:
        return [entries] if entries else []
    groups: defaultdict[object, list[Entry]] = defaultdict(list)
    for entry in entries:
        groups[entry[0]].append(entry)
    groups[entries[-1][0]] = groups.pop(entries[-1][0])
    return list(groups.values())
