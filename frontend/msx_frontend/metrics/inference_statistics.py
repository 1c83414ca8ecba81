"""Statistics of a model version since its start, as the Open Inference Protocol defines them."""

import time
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(slots=True)
class Total:
    """A count, and the seconds of all together."""

    count: int = 0
    seconds: float = 0.0

    def add(self, count: int, seconds: float) -> None:
        self.count += count
        self.seconds += seconds


class InferenceStatistics:
    """`queue` is the time until a worker took a request, `compute` the time until its answer; of successful requests
    only."""

    __slots__ = ("_computed", "_count", "_queued", "batches", "fail", "last")

    def __init__(self) -> None:
        self._count = 0
        self._queued = 0.0
        self._computed = 0.0
        self.last = 0.0
        """The `time.time()` of the last answer; 0 before the first one."""
        self.fail = Total()
        self.batches: dict[int, Total] = {}
        """Totals by the number of requests in a batch."""

    def add(self, status: int, queued: Sequence[float], whole: Sequence[float], last: float) -> None:
        """Requests that were answered with `status`: the seconds of each in the queue, and to its end; the `last` of
        them ended at this `time.monotonic()` instant."""
        if status >= 400:
            self.fail.add(len(whole), sum(whole))
            return
        waited = sum(queued)
        self._count += len(whole)
        self._queued += waited
        self._computed += sum(whole) - waited
        self.last = time.time() - (time.monotonic() - last)

    def add_batches(self, size: int, count: int, seconds: float) -> None:
        self.batches.setdefault(size, Total()).add(count, seconds)

    @property
    def success(self) -> Total:
        return Total(self._count, self._queued + self._computed)

    @property
    def queue(self) -> Total:
        return Total(self._count, self._queued)

    @property
    def compute(self) -> Total:
        return Total(self._count, self._computed)
