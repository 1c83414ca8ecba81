"""What a model version has done since its start, counted as the Open Inference Protocol's statistics want it."""

from __future__ import annotations

import time
from dataclasses import dataclass


@dataclass(slots=True)
class Total:
    """How often, and for how many seconds together."""

    count: int = 0
    seconds: float = 0.0

    def add(self, seconds: float) -> None:
        self.count += 1
        self.seconds += seconds


class InferenceStatistics:
    """`queue` is the time until a worker took a request, `compute` until it had answered it; of successes alone."""

    __slots__ = ("_computed", "_count", "_queued", "batches", "fail", "last")

    def __init__(self) -> None:
        self._count, self._queued, self._computed = 0, 0.0, 0.0
        self.last = 0.0
        """When the last request was answered, as `time.time()`; 0 before the first."""
        self.fail = Total()
        self.batches: dict[int, Total] = {}
        """By the number of requests in a batch."""

    def succeeded(self, queued: float, whole: float) -> None:
        """Seconds in the queue, and to the end."""
        self._count += 1
        self._queued += queued
        self._computed += whole - queued
        self.last = time.time()

    def batch(self, size: int, seconds: float) -> None:
        total = self.batches.get(size)
        if total is None:
            total = self.batches[size] = Total()
        total.count += 1
        total.seconds += seconds

    @property
    def success(self) -> Total:
        return Total(self._count, self._queued + self._computed)

    @property
    def queue(self) -> Total:
        return Total(self._count, self._queued)

    @property
    def compute(self) -> Total:
        return Total(self._count, self._computed)
