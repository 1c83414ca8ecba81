"""Statistics of model versions since their registration, as the Open Inference Protocol defines them."""

import time
from collections.abc import Iterator, Sequence
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

    __slots__ = ("_before", "_computed", "_count", "_queued", "batches", "fail", "last")

    def __init__(self) -> None:
        self._before = 0.0
        """The last answer in the server before this one."""
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

    # -- another server goes on with them --

    @property
    def counts(self) -> list[float]:
        """See `CountedFamily`."""
        return [self._count, self._queued, self._computed, self.fail.count, self.fail.seconds, self.last]

    def go_on(self, counts: Sequence[float]) -> None:
        """Raises ValueError."""
        count, queued, computed, failed, seconds, last = counts
        self._count += int(count)
        self._queued += queued
        self._computed += computed
        self.fail.add(int(failed), seconds)
        self._before += last  # of which the other server tells how much later it is than the last time
        self.last = max(self.last, self._before)


class VersionStatistics:
    """Statistics of all versions. See `CountedFamily`: a series is a version's, or that of its batches of one size."""

    def __init__(self) -> None:
        self.name, self.shape = "inference_statistics", ["model", "version", "batch_size"]
        self._versions: dict[tuple[str, str], InferenceStatistics] = {}
        self._early: dict[tuple[str, str], InferenceStatistics] = {}
        """Counts of another server for versions that are not registered here yet."""
        self._ended: set[tuple[str, str]] = set()
        """Versions that were removed: another server may count for them still."""

    def begin(self, model: str, version: str) -> InferenceStatistics:
        """The version is registered: it goes on with those of another server, and else begins anew."""
        early = self._early.pop((model, version)) if (model, version) in self._early else InferenceStatistics()
        self._versions[model, version] = early
        self._ended.discard((model, version))
        return early

    def end(self, model: str, version: str, statistics: InferenceStatistics) -> None:
        """The version is removed: no server goes on with these statistics, unless another one has its place."""
        if self._versions.get((model, version)) is statistics:
            del self._versions[model, version]
            self._ended.add((model, version))

    def _of(self, model: str, version: str) -> InferenceStatistics:
        if (model, version) in self._ended:
            return InferenceStatistics()
        known = self._versions.get((model, version))
        return known or self._early.setdefault((model, version), InferenceStatistics())

    def counts(self) -> Iterator[tuple[tuple[str, ...], list[float]]]:
        for labels, one in self._versions.items():
            yield (*labels, ""), one.counts
            for size, total in one.batches.items():
                yield (*labels, str(size)), [total.count, total.seconds]

    def add_counts(self, labels: tuple[str, ...], counts: Sequence[float]) -> None:
        """Raises ValueError."""
        model, version, size = labels
        if not size:
            return self._of(model, version).go_on(counts)
        count, seconds = counts
        return self._of(model, version).add_batches(int(size), int(count), seconds)
