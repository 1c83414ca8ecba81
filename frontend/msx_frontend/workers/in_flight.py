"""The batches that were sent to a worker group, in their order, and which of their jobs are not answered yet."""

from collections import deque
from collections.abc import Iterable, Sequence
from itertools import islice
from math import inf

from msx_frontend.job import OWN, Job
from msx_frontend.workers.handed_group import HandedBatch

WEIGHT = 0.1
"""Weight of a batch in the average time of its method."""
MOST_KINDS = 256

Finished = tuple[int, float, float]
"""A batch that is over: its requests, its seconds on the device, and its seconds in the worker. A worker that overlaps
has several batches at once: the device's time for one begins when the batch before it is over."""


class SentBatch:
    """`began` is a `time.monotonic()` instant, 0 while the worker has not begun it."""

    __slots__ = ("began", "joining", "kind", "left", "size")

    def __init__(self, jobs: list[Job], began: float, *, joins: bool) -> None:
        self.size = self.left = len(jobs)
        self.kind = jobs[0].kind
        self.began = began
        self.joining = jobs if joins else []
        """Jobs whose `started` is set when the batch begins: they may have been sent long before."""

    def begin(self, now: float) -> None:
        self.began = now
        for job in self.joining:
            job.started = now


class InFlight:
    """Numbers the jobs of one generation. Batches begin and end in their order: one after the other, or up to three at
    once in a worker that overlaps them."""

    def __init__(self) -> None:
        self.at_once = False
        """Each batch begins as it is sent, and has its own time: requests of an async or continuous handler."""
        self.batches: deque[SentBatch] = deque()
        self.open: dict[int, tuple[Job, SentBatch]] = {}
        """Jobs whose replies are not complete, by number."""
        self._number = 0
        self._freed = 0.0
        """When a batch was over last."""
        self._seconds: dict[str, float] = {}
        """Seconds that batches take, by method."""

    @property
    def number(self) -> int:
        """Number of the job that was added last."""
        return self._number

    def handed(self, now: float) -> list[HandedBatch]:
        """The batches, for another frontend."""
        jobs: dict[SentBatch, list[tuple[int, int]]] = {batch: [] for batch in self.batches}
        for number, (job, batch) in self.open.items():
            jobs[batch].append((number, job.status if job.first_chunk else 0))
        return [
            HandedBatch(
                batch.kind, batch.size, now - batch.began if batch.began else None, bool(batch.joining), numbers
            )
            for batch, numbers in jobs.items()
        ]

    def enter(self, jobs: Sequence[Job], size: int, began: float, *, joins: bool) -> None:
        """A batch of a frontend before this one, whose jobs have their numbers; `size` with those that are answered."""
        batch = SentBatch(list(jobs), began, joins=joins)
        batch.size = size
        self.batches.append(batch)
        for job in jobs:
            self.open[job.number] = job, batch

    def go_on_after(self, number: int) -> None:
        """The worker has had requests up to this number from a frontend before this one, and may answer them still."""
        self._number = max(self._number, number)

    @property
    def awaited(self) -> bool:
        """A client waits for one of them."""
        return any(not job.done for job, _ in self.open.values())

    @property
    def begun(self) -> list[Job]:
        """Jobs that the handler works on, but for those whose clients have left."""
        return [job for job, batch in self.open.values() if batch.began and not job.done]

    @property
    def foremost(self) -> list[Job]:
        """Jobs that no other one is before, but for those whose clients have left: all that run at once, or those of
        the oldest batch, whose end the batches behind it wait for, also where they overlap."""
        if self.at_once:
            return self.begun
        first = self.batches[0] if self.batches else None
        return [job for job, batch in self.open.values() if batch is first and not job.done]

    def by_begin(self) -> tuple[list[Job], list[Job]]:
        """The open jobs whose batches have begun, and those whose batches have not."""
        begun = [job for job, batch in self.open.values() if batch.began]
        return begun, [job for job, batch in self.open.values() if not batch.began]

    @property
    def behind(self) -> int:
        """Open jobs of the batches that have not begun. Those that have stand before them: a few at most."""
        waiting = len(self.open)
        for batch in self.batches:
            if not batch.began:
                break
            waiting -= batch.left
        return waiting

    def add(self, jobs: list[Job], size: int, now: float, *, joins: bool = False) -> None:
        """Batches of `size` jobs, the last of them perhaps smaller. The first begins now if nothing runs before it."""
        number, opened, batches = self._number, self.open, self.batches
        for start in range(0, len(jobs), size):
            some = jobs[start : start + size]
            batch = SentBatch(some, now if self.at_once or not batches else 0.0, joins=joins)
            batches.append(batch)
            for job in some:
                number += 1
                job.number, job.started = number, now
                opened[number] = job, batch
        self._number = number

    def join(self, first: int, batches: int, now: float) -> None:
        """The worker has begun the batch of job `first`, as one with the batches behind it that make it `batches`. It
        began earlier if the batch before it was over.

        What a worker says is not trusted: a number of no open job is ignored, and so is a batch that may not join.
        """
        if first not in self.open:
            return
        batch = self.open[first][1]
        if not batch.began:
            batch.begin(now)
        at = self.batches.index(batch) + 1
        others = min(max(batches - 1, 0), len(self.batches))
        for other in list(islice(self.batches, at, at + others)):
            if other.began or not other.joining:
                break
            self._merge(other, batch, now)

    def _merge(self, other: SentBatch, batch: SentBatch, now: float) -> None:
        self.batches.remove(other)
        other.begin(now)
        batch.size += other.size
        batch.left += other.left
        for job in other.joining:
            if job.number in self.open:
                self.open[job.number] = job, batch

    def job(self, number: int) -> Job | None:
        found = self.open.get(number)
        return None if found is None else found[0]

    def jobs(self) -> list[Job]:
        return [job for job, _ in self.open.values()]

    def finish(self, numbers: Iterable[int], now: float) -> list[Finished]:
        """These jobs are over. Returns the batches that ended with them, which divide their time equally.

        The next batch begins now, if it has not begun.
        """
        over, opened, batches = list[SentBatch](), self.open, self.batches
        for number in numbers:
            _, batch = opened.pop(number)
            batch.left -= 1
            if not batch.left:
                batches.remove(batch)
                over.append(batch)
        if not over:
            return []
        if self.at_once:
            return [(batch.size, now - batch.began, now - batch.began) for batch in over]
        if batches and not batches[0].began:
            batches[0].begin(now)
        began, freed, self._freed = over[0].began, self._freed, now
        seconds = (now - (began if began > freed else freed)) / len(over)
        if len(over) == 1 and over[0].kind in OWN:
            return [(over[0].size, seconds, now - (began or freed))]
        for batch in over:
            if batch.kind not in OWN:
                self._learn(batch.kind, seconds)
        return [(batch.size, seconds, seconds) for batch in over]

    def typical_seconds(self, kind: str) -> float:
        """Seconds of the device for a batch of this method on average; infinity before the first one has finished."""
        return self._seconds.get(kind, inf)

    def _learn(self, kind: str, seconds: float) -> None:
        known = self._seconds.get(kind, seconds)
        if len(self._seconds) >= MOST_KINDS:
            self._seconds.clear()
        self._seconds[kind] = known + WEIGHT * (seconds - known)

    def release(self) -> tuple[list[Job], list[Job]]:
        """The group has ended: returns the open jobs whose batch had begun, and those whose batch had not."""
        released = self.by_begin()
        self.batches.clear()
        self.open.clear()
        return released
