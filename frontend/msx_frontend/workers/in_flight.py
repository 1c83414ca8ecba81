"""What a worker group holds: batches in the order in which they were sent, and which of their jobs are open."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from msx_frontend.job import INFER, OPERATIONS, Job, KeptHeaders
from msx_protocol import FieldHead, Predict, RequestHead, encode_frame_parts, encode_headers

NAMED = OPERATIONS | {INFER}
"""Kinds of jobs that the worker is told."""


class SentBatch:
    """`began` is a `time.monotonic()` instant, 0 while another batch of the group runs before it."""

    __slots__ = ("began", "joining", "left", "size")

    def __init__(self, jobs: list[Job], began: float, *, joins: bool) -> None:
        self.size = self.left = len(jobs)
        self.began = began
        self.joining = jobs if joins else []
        """Those that are to know when they begin: they may have been sent long before."""

    def begin(self, now: float) -> None:
        self.began = now
        for job in self.joining:
            job.started = now


class InFlight:
    """Numbers the jobs of one generation. A worker of batches works on one after the other, an async one on all."""

    def __init__(self) -> None:
        self._batches: deque[SentBatch] = deque()
        self._open: dict[int, tuple[Job, SentBatch]] = {}
        self._number = 0

    def __len__(self) -> int:
        """Open jobs."""
        return len(self._open)

    def __contains__(self, number: int) -> bool:
        return number in self._open

    @property
    def awaited(self) -> bool:
        """Somebody waits for one of them."""
        return any(not job.done for job, _ in self._open.values())

    @property
    def batches(self) -> int:
        return len(self._batches)

    @property
    def behind(self) -> int:
        """Open jobs of the batches behind the first."""
        return len(self._open) - self._batches[0].left if self._batches else 0

    def add(self, jobs: list[Job], now: float, *, at_once: bool, joins: bool = False) -> list[bytes | bytearray]:
        """The Predict frame of a batch. It begins now when `at_once` or when nothing runs before it."""
        batch = SentBatch(jobs, now if at_once or not self._batches else 0.0, joins=joins)
        number, opened = self._number, self._open
        heads, bodies = [], []
        for job in jobs:
            number += 1
            job.number, job.started = number, now
            opened[number] = job, batch
            heads.append(_head(job, now))
            bodies += [field.data for field in job.fields]
        self._number = number
        self._batches.append(batch)
        return encode_frame_parts(Predict(heads, joins), bodies)

    def join(self, batches: int, now: float) -> None:
        """The worker has begun the first ones as one; what runs began when the one before was over."""
        first, *others = (self._batches.popleft() for _ in range(batches))
        for batch in others:
            batch.begin(now)
            first.size += batch.size
            first.left += batch.left
            for job in batch.joining:
                if job.number in self._open:
                    self._open[job.number] = job, first
        self._batches.appendleft(first)

    def job(self, number: int) -> Job | None:
        found = self._open.get(number)
        return None if found is None else found[0]

    def jobs(self) -> list[Job]:
        return [job for job, _ in self._open.values()]

    def finish(self, numbers: Iterable[int], now: float) -> list[tuple[int, float]]:
        """These jobs are over; returns size and seconds of the batches of which they were the last.

        The next batch begins now. Those whose last answers came together have the time since the first began in equal
        shares.
        """
        over = []
        for number in numbers:
            _, batch = self._open.pop(number)
            batch.left -= 1
            if not batch.left:
                self._batches.remove(batch)
                over.append(batch)
        if not over:
            return []
        if self._batches and not self._batches[0].began:
            self._batches[0].begin(now)
        share = 1 + sum(not batch.began for batch in over)
        return [(batch.size, (now - (batch.began or over[0].began)) / share) for batch in over]

    def let_go(self) -> tuple[list[Job], list[Job]]:
        """The group has ended: open jobs whose batch had begun, and those that had only been sent."""
        begun = [job for job, batch in self._open.values() if batch.began]
        waiting = [job for job, batch in self._open.values() if not batch.began]
        self._batches.clear()
        self._open.clear()
        return begun, waiting


def _head(job: Job, now: float) -> RequestHead:
    fields = [FieldHead(field.name, field.content_type, len(field.data)) for field in job.fields]
    timeout = None if job.deadline is None else max(job.deadline - now, 0.0)
    headers = job.headers.raw if isinstance(job.headers, KeptHeaders) else encode_headers(job.headers)
    return RequestHead(job.number, job.id, headers, fields, timeout, job.kind if job.kind in NAMED else "")
