"""What a model version has done since its start, counted as the Open Inference Protocol's statistics want it."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from msx_frontend.job import DESCRIBE, Job


@dataclass(slots=True)
class Total:
    """How often, and for how many seconds together."""

    count: int = 0
    seconds: float = 0.0

    def add(self, seconds: float) -> None:
        self.count += 1
        self.seconds += seconds


@dataclass(slots=True)
class InferenceStatistics:
    """`queue` is the time until a worker took a request, `compute` until it had answered it."""

    success: Total = field(default_factory=Total)
    fail: Total = field(default_factory=Total)
    queue: Total = field(default_factory=Total)
    compute: Total = field(default_factory=Total)
    batches: dict[int, Total] = field(default_factory=dict)
    """By the number of requests in a batch."""
    last: float = 0.0
    """When the last request was answered, as `time.time()`; 0 before the first."""

    def job_ended(self, job: Job, now: float) -> None:
        """`now` is a `time.monotonic()` instant."""
        if job.kind == DESCRIBE:
            return
        if job.status >= 400:
            self.fail.add(now - job.enqueued)
            return
        self.last = time.time()
        self.success.add(now - job.enqueued)
        self.queue.add(job.started - job.enqueued)
        self.compute.add(now - job.started)

    def batch(self, size: int, seconds: float) -> None:
        self.batches.setdefault(size, Total()).add(seconds)
