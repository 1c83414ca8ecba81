"""One queue, its groups and a batching policy in simulated time: what requests would wait, without a clock."""

from __future__ import annotations

import heapq
import random
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from msx_frontend.queueing.batching import BatchingPolicy


@dataclass(frozen=True)
class Service:
    """A batch of `n` takes `fixed + per_item * n` seconds; between two batches a group is without work for `turnaround`
    seconds, in which its answers come back and the next batch goes out.
    """

    fixed: float
    per_item: float
    turnaround: float = 0.0

    def seconds(self, size: int) -> float:
        return self.turnaround + self.fixed + self.per_item * size


def poisson(rate: float, count: int, seed: int = 0) -> list[float]:
    draw, at = random.Random(seed), 0.0
    moments: list[float] = []
    for _ in range(count):
        at += draw.expovariate(rate)
        moments.append(at)
    return moments


def bursts(rate: float, count: int, *, size: float, gap: float, seed: int = 0) -> list[float]:
    """Groups of `size` on average (geometric), within one `gap` seconds apart; `rate` a second over all."""
    draw, begin = random.Random(seed), 0.0
    moments: list[float] = []
    while len(moments) < count:
        begin += draw.expovariate(rate / size)
        at = begin
        moments.append(at)
        while draw.random() < 1 - 1 / size:
            at += draw.expovariate(1 / gap)
            moments.append(at)
    return sorted(moments)[:count]


@dataclass
class Simulation:
    """The dispatcher's rule: a free group asks the policy, takes what it may, and asks again when told to."""

    policy: BatchingPolicy
    batch_size: int
    service: Service
    groups: int = 1

    def __post_init__(self) -> None:
        self._queue: deque[float] = deque()
        self._events: list[tuple[float, int, str, list[float], float]] = []
        self._order = 0
        self._free = self.groups
        self._idle_since = 0.0
        self.sizes: list[int] = []
        self.longest_idle_wait = 0.0
        """Longest wait of a request while some group had nothing to do."""

    def run(self, arrivals: Sequence[float]) -> list[float]:
        """Seconds that each request took, in the order of their answers."""
        for at in arrivals:
            self._later(at, "arrival")
        taken: list[float] = []
        while self._events:
            now, _, kind, batch, began = heapq.heappop(self._events)
            if kind == "arrival":
                self.policy.arrived(now)
                self._queue.append(now)
            elif kind == "answer":
                self._free += 1
                self._idle_since = now if self._free == 1 else self._idle_since
                self.policy.finished(len(batch), now - began)
                taken += [now - at for at in batch]
            self._pump(now)
        return taken

    def _pump(self, now: float) -> None:
        while self._queue and self._free:
            delay = self.policy.wait(now, len(self._queue), self._queue[0], self._free)
            if delay > 0:
                self._later(now + delay + 1e-9, "again")
                return
            self.longest_idle_wait = max(self.longest_idle_wait, now - max(self._queue[0], self._idle_since))
            batch = [self._queue.popleft() for _ in range(min(self.batch_size, len(self._queue)))]
            self.sizes.append(len(batch))
            self._free -= 1
            self._later(now + self.service.seconds(len(batch)), "answer", batch, now)

    def _later(self, at: float, kind: str, batch: list[float] | None = None, began: float = 0.0) -> None:
        self._order += 1
        heapq.heappush(self._events, (at, self._order, kind, batch or [], began))


def p99(values: Sequence[float]) -> float:
    return sorted(values)[int(len(values) * 0.99)]
