"""Memory of the decision on the number of workers between two readings."""

from collections import deque
from itertools import pairwise
from math import exp, sqrt
from typing import NamedTuple

from msx_frontend.models.autoscaling.reading import Reading

LONG = 30.0
"""Seconds over which the mean load is taken."""

MEMORY = 20.0
"""Seconds of full work after which an old measurement of what a worker can do counts a third."""

PROVEN = 0.9
"""Seconds of a worker's full work before what it can do is known."""


class TooFew(NamedTuple):
    """So many workers were not enough for `rate` requests per second: so many again only for clearly fewer requests."""

    workers: int
    rate: float


class History:
    """History of one model version. It has no clock: time is what readings say."""

    def __init__(self, wanted: int) -> None:
        self.wanted = wanted
        self.above_since: float | None = None
        """Since when the target has been missed without a break."""
        self.changed_at: float | None = None
        """When the number of workers was raised, or the first reading."""
        self.active_at: float | None = None
        """When a request was last there; None if none ever was."""
        self.too_few: TooFew | None = None
        self._samples: deque[Reading] = deque()
        self._needs: deque[tuple[float, int]] = deque()
        """Each is larger than all after it: the first one is the largest of the window."""
        self._answers = self._seconds = 0.0
        """Answers and seconds of workers that had all the work they could do; older ones count less."""

    def add(self, reading: Reading) -> None:
        if self._samples:
            self._measure(self._samples[-1], reading)
        if self.changed_at is None:
            self.changed_at = reading.now
            self.active_at = reading.now if self.wanted else None
        came = bool(self._samples) and reading.arrived > self._samples[-1].arrived
        if reading.demand or came:
            self.active_at = reading.now
        self._samples.append(reading)
        while len(self._samples) > 2 and self._samples[1].now <= reading.now - LONG:
            self._samples.popleft()

    def _measure(self, before: Reading, now: Reading) -> None:
        """Measure the capacity of workers, which is the rate of answers while requests wait for them."""
        passed = now.now - before.now
        if before.queue and now.queue and now.ready and before.ready == now.ready and passed > 0:
            kept = exp(-passed / MEMORY)
            self._answers = self._answers * kept + max(now.answered - before.answered, 0)
            self._seconds = self._seconds * kept + now.ready * passed

    @property
    def capacity(self) -> float | None:
        """Requests per second that one worker answers; None while it is not known."""
        return self._answers / self._seconds if self._answers > 0 and self._seconds >= PROVEN else None

    @property
    def rate(self) -> float:
        """Requests per second that arrived on average."""
        first, last = self._samples[0], self._samples[-1]
        passed = last.now - first.now
        return max(last.arrived - first.arrived, 0.0) / passed if passed > 0 else 0.0

    def recent_rate(self, seconds: float) -> float:
        """Requests per second that arrived in the last `seconds`: the least that so many random arrivals mean."""
        last = self._samples[-1]
        first = next(one for one in reversed(self._samples) if one is self._samples[0] or last.now - one.now >= seconds)
        passed, count = last.now - first.now, max(last.arrived - first.arrived, 0.0)
        return (count - sqrt(count)) / passed if passed > 0 and count > 1 else 0.0

    @property
    def last_rate(self) -> float:
        """Requests per second that arrived since the reading before the last one."""
        if len(self._samples) < 2:
            return 0.0
        before, last = self._samples[-2], self._samples[-1]
        return max(last.arrived - before.arrived, 0.0) / (last.now - before.now) if last.now > before.now else 0.0

    def mean_in_flight(self) -> float:
        return self._mean([reading.in_flight for reading in self._samples])

    def mean_demand(self, seconds: float = LONG) -> float:
        """Requests that waited or were worked on."""
        since = self._samples[-1].now - seconds
        return self._mean([reading.demand for reading in self._samples], since)

    def _mean(self, values: list[int], since: float = float("-inf")) -> float:
        """Mean over time: each value holds until the next."""
        total = span = 0.0
        for (before, after), value in zip(pairwise(self._samples), values[1:], strict=True):
            if after.now > since:
                total, span = total + value * (after.now - before.now), span + after.now - before.now
        return total / span if span else float(values[-1])

    def most_needed(self, now: float, need: int, seconds: float) -> int:
        """The largest of the needs of the last `seconds`, with this one."""
        while self._needs and self._needs[-1][1] <= need:
            self._needs.pop()
        self._needs.append((now, need))
        while self._needs[0][0] < now - seconds:
            self._needs.popleft()
        return self._needs[0][1]
