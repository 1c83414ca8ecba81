"""What a worker group holds: batches in the order in which they were sent, and which of their jobs are open."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from msx_backend.protocol import FieldHead, Predict, RequestHead, encode_frame_parts
from msx_frontend.job import INFER, OPERATIONS, Job


@dataclass(slots=True)
class SentBatch:
    """`began` is a `time.monotonic()` instant, 0 while another batch of the group runs before it."""

    size: int
    began: float
    open: dict[int, Job] = field(default_factory=dict)


class InFlight:
    """Numbers the jobs of one generation. A worker of batches works on one after the other, an async one on all."""

    def __init__(self) -> None:
        self._batches: deque[SentBatch] = deque()
        self._batch_of: dict[int, SentBatch] = {}
        self._number = 0

    def __len__(self) -> int:
        """Open jobs."""
        return len(self._batch_of)

    def __contains__(self, number: int) -> bool:
        return number in self._batch_of

    @property
    def awaited(self) -> bool:
        """Somebody waits for one of them."""
        return any(not job.done for batch in self._batches for job in batch.open.values())

    @property
    def batches(self) -> int:
        return len(self._batches)

    def add(self, jobs: list[Job], now: float, *, at_once: bool) -> list[bytes | bytearray]:
        """The Predict frame of a batch. It begins now when `at_once` or when nothing runs before it."""
        for job in jobs:
            self._number += 1
            job.number, job.started = self._number, now
        heads = [_head(job, now) for job in jobs]
        frame = encode_frame_parts(Predict(heads), [part.data for job in jobs for part in job.fields])
        batch = SentBatch(len(jobs), began=now if at_once or not self._batches else 0.0)
        batch.open = {job.number: job for job in jobs}
        self._batch_of.update(dict.fromkeys(batch.open, batch))
        self._batches.append(batch)
        return frame

    def job(self, number: int) -> Job | None:
        batch = self._batch_of.get(number)
        return batch.open[number] if batch is not None else None

    def jobs(self) -> list[Job]:
        return [job for batch in self._batches for job in batch.open.values()]

    def finish(self, number: int, now: float) -> SentBatch | None:
        """One job is over; returns its batch if that was the last of it. The next batch begins now."""
        batch = self._batch_of.pop(number)
        del batch.open[number]
        if batch.open:
            return None
        self._batches.remove(batch)
        if self._batches and not self._batches[0].began:
            self._batches[0].began = now
        return batch

    def let_go(self) -> tuple[list[Job], list[Job]]:
        """The group has ended: open jobs whose batch had begun, and those that had only been sent."""
        begun = [job for batch in self._batches if batch.began for job in batch.open.values()]
        waiting = [job for batch in self._batches if not batch.began for job in batch.open.values()]
        self._batches.clear()
        self._batch_of.clear()
        return begun, waiting


def _head(job: Job, now: float) -> RequestHead:
    fields = [FieldHead(part.name, part.content_type, len(part.data)) for part in job.fields]
    timeout = None if job.deadline is None else max(job.deadline - now, 0.0)
    operation = job.kind if job.kind in OPERATIONS or job.kind == INFER else ""
    return RequestHead(job.number, job.id, job.headers, fields, timeout, operation)
