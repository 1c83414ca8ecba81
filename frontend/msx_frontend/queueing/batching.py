"""The batching policies (`batchingPolicy`): when a free group takes a batch, and how large it is."""

from math import inf as INFINITY
from typing import Protocol


class BatchingPolicy(Protocol):
    """The dispatcher calls `wait` whenever a group is free and jobs are queued."""

    def arrived(self, now: float) -> None:
        """A job came in."""

    def wait(self, now: float, waiting: int, oldest: float, idle: int) -> float:
        """Seconds to wait for more jobs before a group takes the `waiting` ones; 0: take them now.

        The first of them was queued at `oldest`. `idle` groups have no job, this one included.
        """

    def finished(self, size: int, seconds: float, count: int = 1) -> None:
        """`count` batches of `size` took this long each."""

    @property
    def typical_seconds(self) -> float:
        """How long a batch takes on average; infinity before the first one has finished."""


class LatencyModel:
    """Models the latency of a batch as `fixed + per_item * size`, by least squares with exponential forgetting."""

    FORGET = 0.98

    def __init__(self) -> None:
        self._n = self._x = self._y = self._xx = self._xy = 0.0

    def observe(self, size: int, seconds: float, count: int = 1) -> None:
        """`count` batches of this size and duration, one after the other."""
        keep, weight = self.FORGET, 1.0
        if count > 1:
            keep = self.FORGET**count
            weight = (1 - keep) / (1 - self.FORGET)  # the sum of the geometric series
        self._n = self._n * keep + weight
        self._x = self._x * keep + weight * size
        self._y = self._y * keep + weight * seconds
        self._xx = self._xx * keep + weight * size * size
        self._xy = self._xy * keep + weight * size * seconds

    @property
    def mean(self) -> float:
        return self._y / self._n if self._n else INFINITY

    @property
    def fixed(self) -> float:
        """The cost of a batch that does not depend on its size: what waiting can save. 0 while sizes do not vary."""
        spread = self._n * self._xx - self._x * self._x
        if spread <= 1e-9 * max(self._xx * self._n, 1.0):
            return 0.0
        slope = max((self._n * self._xy - self._x * self._y) / spread, 0.0)
        return max((self._y - slope * self._x) / self._n, 0.0)


class ArrivalRate:
    """The mean gap between two arrivals, in seconds. A gap above `longest` counts as `longest`.

    So the gaps within bursts decide, not the pauses between them.
    """

    WEIGHT = 0.1
    OVERDUE = 2
    """After so many gaps without an arrival, no more arrivals are expected."""

    def __init__(self) -> None:
        self._last: float | None = None
        self.gap = INFINITY

    def arrived(self, now: float, longest: float = INFINITY) -> None:
        last, self._last = self._last, now
        if last is not None:
            gap = now - last if now - last < longest else longest
            self.gap = gap if self.gap == INFINITY else self.gap + self.WEIGHT * (gap - self.gap)

    def patience(self, now: float) -> float:
        """Seconds for which the next arrival is still expected; 0 or less when it is overdue."""
        return 0.0 if self._last is None else self._last + self.OVERDUE * self.gap - now


class DynamicPolicy:
    """Take the queued jobs at once, unless it pays to wait for one more: then wait up to `max_delay` seconds.

    Waiting for the next arrival delays every queued job by one gap. It saves the fixed cost of a second batch for the
    job that would have to wait behind this one. While another group is idle, no job has to wait, so nothing is saved.
    """

    MARGIN = 2
    """The saving must be this many times the wait, because the gap is an estimate and random arrivals come singly. With
    a smaller factor, the p99 of Poisson arrivals at light load is up to a third above that of never waiting."""

    def __init__(self, batch_size: int, max_delay: float) -> None:
        self._batch_size = batch_size
        self._max_delay = max_delay
        self._latency = LatencyModel()
        self._arrivals = ArrivalRate()
        self._fixed = 0.0

    def arrived(self, now: float) -> None:
        if self._batch_size > 1:
            self._arrivals.arrived(now, self._fixed or INFINITY)

    def wait(self, now: float, waiting: int, oldest: float, idle: int) -> float:
        if idle > 1 or waiting >= self._batch_size or self._max_delay <= 0:
            return 0.0
        left = min(oldest + self._max_delay - now, self._arrivals.patience(now))
        if left <= 0 or self.MARGIN * self._arrivals.gap * waiting >= self._fixed:
            return 0.0
        return left

    def finished(self, size: int, seconds: float, count: int = 1) -> None:
        self._latency.observe(size, seconds, count)
        if self._batch_size > 1:
            self._fixed = self._latency.fixed

    @property
    def typical_seconds(self) -> float:
        return self._latency.mean


class FixedPolicy:
    """TorchServe's rule: a batch leaves when it is full, or `max_delay` seconds after its first job was queued."""

    def __init__(self, batch_size: int, max_delay: float) -> None:
        self._batch_size = batch_size
        self._max_delay = max_delay

    def arrived(self, now: float) -> None:
        return None

    def wait(self, now: float, waiting: int, oldest: float, idle: int) -> float:
        return 0.0 if waiting >= self._batch_size else max(oldest + self._max_delay - now, 0.0)

    def finished(self, size: int, seconds: float, count: int = 1) -> None:
        return None

    @property
    def typical_seconds(self) -> float:
        return INFINITY


def make_policy(name: str, batch_size: int, max_delay: float) -> BatchingPolicy:
    if name == "fixed":
        return FixedPolicy(batch_size, max_delay)
    return DynamicPolicy(batch_size, max_delay)
