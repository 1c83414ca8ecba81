"""The batches that were sent to a worker group, in their order, and which of their jobs are not answered yet."""

from collections import deque
from collections.abc import Iterable
from math import inf

from msx_frontend.job import OWN, Job

WEIGHT = 0.1
"""Weight of a batch in the average time of its method."""
MOST_KINDS = 256


class SentBatch:
    """`began` is a `time.monotonic()` instant, 0 while another batch of the group runs before it."""

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
    """Numbers the jobs of one generation. A batch handler runs one batch after the other, an async one all at once."""

    def __init__(self) -> None:
        self.batches: deque[SentBatch] = deque()
        self.open: dict[int, tuple[Job, SentBatch]] = {}
        """Jobs whose replies are not complete, by number."""
        self._number = 0
        self._seconds: dict[str, float] = {}
        """Seconds that batches take, by method."""

    @property
    def awaited(self) -> bool:
        """A client waits for one of them."""
        return any(not job.done for job, _ in self.open.values())

    @property
    def begun(self) -> list[Job]:
        """Jobs that the handler works on, but for those whose clients have left."""
        return [job for job, batch in self.open.values() if batch.began and not job.done]

    def by_begin(self) -> tuple[list[Job], list[Job]]:
        """The open jobs whose batches have begun, and those whose batches have not."""
        begun = [job for job, batch in self.open.values() if batch.began]
        return begun, [job for job, batch in self.open.values() if not batch.began]

    @property
    def behind(self) -> int:
        """Open jobs of the batches behind the first."""
        return len(self.open) - self.batches[0].left if self.batches else 0

    def add(self, jobs: list[Job], size: int, now: float, *, at_once: bool, joins: bool = False) -> None:
        """Batches of `size` jobs, the last of them perhaps smaller. The first begins now if nothing runs before it.

        `at_once`: all begin now.
        """
        number, opened, batches = self._number, self.open, self.batches
        for start in range(0, len(jobs), size):
            some = jobs[start : start + size]
            batch = SentBatch(some, now if at_once or not batches else 0.0, joins=joins)
            batches.append(batch)
            for job in some:
                number += 1
                job.number, job.started = number, now
                opened[number] = job, batch
        self._number = number

    def join(self, batches: int, now: float) -> None:
        """The worker has begun the first `batches` as one; it began when the batch before it was over."""
        first, *others = (self.batches.popleft() for _ in range(batches))
        for batch in others:
            batch.begin(now)
            first.size += batch.size
            first.left += batch.left
            for job in batch.joining:
                if job.number in self.open:
                    self.open[job.number] = job, first
        self.batches.appendleft(first)

    def job(self, number: int) -> Job | None:
        found = self.open.get(number)
        return None if found is None else found[0]

    def jobs(self) -> list[Job]:
        return [job for job, _ in self.open.values()]

    def finish(self, numbers: Iterable[int], now: float) -> list[tuple[int, float]]:
        """These jobs are over. Returns size and seconds of each batch that ended with them.

        The next batch begins now. Batches that end together share the time since the first of them began equally.
        """
        over, opened, batches = [], self.open, self.batches
        for number in numbers:
            _, batch = opened.pop(number)
            batch.left -= 1
            if not batch.left:
                batches.remove(batch)
                over.append(batch)
        if batches and over and not batches[0].began:
            batches[0].begin(now)
        if len(over) == 1 and over[0].kind in OWN:
            return [(over[0].size, now - over[0].began)]
        share = 1 + sum(not batch.began for batch in over)
        return [self._ended(batch, (now - (batch.began or over[0].began)) / share) for batch in over]

    def _ended(self, batch: SentBatch, seconds: float) -> tuple[int, float]:
        if batch.kind not in OWN:
            self._learn(batch.kind, seconds)
        return batch.size, seconds

    def typical_seconds(self, kind: str) -> float:
        """How long a batch of this method takes on average; infinity before the first one has finished."""
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
