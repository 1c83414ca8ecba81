"""Collects ended jobs and counts many of them at once, which costs half as much as counting each one."""

from collections import defaultdict
from typing import Protocol, TypeVar

MOST = 256
"""Jobs that are counted at once, in a few tenths of a millisecond."""

Ended = tuple[tuple["CountsJobs", "str | None", int, str], float, float, float, float]
"""A job: its metrics, requested version, status and kind; then the `time.monotonic()` instants when it was queued,
taken by a worker (or 0.0), first answered (or 0.0), and ended."""

Batch = tuple[tuple["CountsJobs", int], float, float]
"""A batch: its metrics and number of jobs; the seconds of the worker, and the seconds before the worker began."""

Entry = TypeVar("Entry", Ended, Batch)


class CountsJobs(Protocol):
    """The metrics of one model version."""

    def add_jobs(self, version: str | None, status: int, kind: str, jobs: list[Ended]) -> None:
        """Count jobs of one requested version, one status and one kind."""

    def add_batches(self, size: int, batches: list[Batch]) -> None:
        """Count batches of one size."""


class PendingCounts:
    """Jobs of all models together, so that a scrape stays short with many models.

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
    """Groups of entries with the same first member. The group of the last entry comes last, for gauges."""
    if len({entry[0] for entry in entries}) < 2:
        return [entries] if entries else []
    groups: defaultdict[object, list[Entry]] = defaultdict(list)
    for entry in entries:
        groups[entry[0]].append(entry)
    groups[entries[-1][0]] = groups.pop(entries[-1][0])
    return list(groups.values())
