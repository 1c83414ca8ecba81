"""The bounded queue of one model version."""

from __future__ import annotations

import time
from collections import deque

from msx_frontend.errors import DeadlineExceeded, ServiceError
from msx_frontend.job import ALONE, Job


class JobQueue:
    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self._jobs: deque[Job] = deque()

    def __len__(self) -> int:
        return len(self._jobs)

    @property
    def full(self) -> bool:
        return len(self._jobs) >= self.capacity

    @property
    def head(self) -> Job | None:
        """The next job."""
        return self._jobs[0] if self._jobs else None

    @property
    def oldest_age(self) -> float:
        """Seconds that the oldest job has waited; 0 when none waits."""
        return time.monotonic() - self._jobs[0].enqueued if self._jobs else 0.0

    def put(self, job: Job) -> None:
        job.queue = self
        self._jobs.append(job)

    def put_back(self, jobs: list[Job]) -> None:
        """Put jobs whose batch had not begun when their group ended at the head again, in their order."""
        for job in reversed(jobs):
            job.queue = self
            self._jobs.appendleft(job)

    def take(self, limit: int) -> list[Job]:
        """Up to `limit` jobs of the head's kind, in order; only one of a kind that is never batched."""
        jobs, taken = self._jobs, list[Job]()
        if not jobs:
            return taken
        kind = jobs[0].kind
        for _ in range(1 if kind in ALONE else min(limit, len(jobs))):
            if jobs[0].kind != kind:
                break
            job = jobs.popleft()
            job.queue = None
            taken.append(job)
        return taken

    def discard(self, job: Job) -> None:
        """The job was cancelled."""
        job.queue = None
        self._jobs.remove(job)

    def expire(self, longest_wait: float) -> None:
        """Fail the jobs that have waited for more than `longest_wait` seconds."""
        now = time.monotonic()
        while self._jobs and now - self._jobs[0].enqueued > longest_wait:
            job = self._pop()
            job.fail(
                DeadlineExceeded(
                    f"The request waited in the queue of model {job.model_name} for {longest_wait:g} s, its "
                    f"responseTimeout; add workers or raise responseTimeout."
                )
            )

    def fail_all(self, error: ServiceError) -> None:
        while self._jobs:
            self._pop().fail(error)

    def _pop(self) -> Job:
        job = self._jobs.popleft()
        job.queue = None
        return job
