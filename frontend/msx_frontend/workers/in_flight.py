"""What a worker group holds: batches in the order in which they were sent, and which of their jobs are open."""

from __future__ import annotations

from collections import deque

from msx_backend.protocol import FieldHead, Predict, RequestHead, encode_frame_parts
from msx_frontend.queueing.job import INFER, OPERATIONS, Job

NAMED = OPERATIONS | {INFER}
"""Kinds of jobs that the worker is told."""


class SentBatch:
    """`began` is a `time.monotonic()` instant, 0 while another batch of the group runs before it."""

    __slots__ = ("began", "left", "size")

    def __init__(self, size: int, began: float) -> None:
        self.size = self.left = size
        self.began = began


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

    def add(self, jobs: list[Job], now: float, *, at_once: bool) -> list[bytes | bytearray]:
        """The Predict frame of a batch. It begins now when `at_once` or when nothing runs before it."""
        batch = SentBatch(len(jobs), now if at_once or not self._batches else 0.0)
        heads, bodies = [], []
        for job in jobs:
            self._number = job.number = self._number + 1
            job.started = now
            self._open[job.number] = job, batch
            heads.append(_head(job, now))
            bodies += [field.data for field in job.fields]
        self._batches.append(batch)
        return encode_frame_parts(Predict(heads), bodies)

    def job(self, number: int) -> Job | None:
        found = self._open.get(number)
        return None if found is None else found[0]

    def jobs(self) -> list[Job]:
        return [job for job, _ in self._open.values()]

    def finish(self, number: int, now: float) -> SentBatch | None:
        """One job is over; returns its batch if that was the last of it. The next batch begins now."""
        _, batch = self._open.pop(number)
        batch.left -= 1
        if batch.left:
            return None
        self._batches.remove(batch)
        if self._batches and not self._batches[0].began:
            self._batches[0].began = now
        return batch

    def let_go(self) -> tuple[list[Job], list[Job]]:
        """The group has ended: open jobs whose batch had begun, and those that had only been sent."""
        begun = [job for job, batch in self._open.values() if batch.began]
        waiting = [job for job, batch in self._open.values() if not batch.began]
        self._batches.clear()
        self._open.clear()
        return begun, waiting


def _head(job: Job, now: float) -> RequestHead:
    fields = [FieldHead(name, content_type, len(data)) for name, content_type, data in job.fields]
    timeout = None if job.deadline is None else max(job.deadline - now, 0.0)
    return RequestHead(job.number, job.id, job.headers, fields, timeout, job.kind if job.kind in NAMED else "")
