"""A model with a queue and workers, in virtual time: one request after the other on each worker."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from random import Random

from benchmarks.autoscaling.rules import Rule
from msx_frontend.models.autoscaling.reading import Reading

LEAST, MOST = 1, 24
SHAPE = 4.0
"""Shape of the gamma distribution of service times: their deviation is half their mean."""

STEP = 10.0
"""Seconds between two points of the plots."""


@dataclass
class Outcome:
    waits: list[float] = field(default_factory=list)
    worker_seconds: float = 0.0
    """Seconds of workers that load, serve or finish their last request."""
    above: float = 0.0
    """Worker-seconds above what was needed."""
    missed: float = 0.0
    """Seconds in which the oldest request had waited for longer than the target."""
    decisions: int = 0
    workers: dict[float, list[float]] = field(default_factory=dict)


class World:
    """`needed` says how many workers an instant needs; all times in seconds."""

    def __init__(
        self,
        arrivals: Sequence[float],
        rule: Rule,
        *,
        workers: int,
        service: float,
        load: float,
        target: float,
        needed: Callable[[float], int],
    ) -> None:
        self._arrivals, self._rule, self._service, self._load = arrivals, rule, service, load
        self._target, self._needed = target, needed
        self._random = Random(SHAPE)  # the same each time
        self._queue: deque[float] = deque()
        self._idle, self._busy, self._leaving = workers, 0, 0
        self._starting: list[float] = []
        self._events: list[tuple[float, str]] = []
        self._answered = 0
        self.outcome = Outcome()

    def run(self, seconds: float) -> Outcome:
        heappush(self._events, (0.0, "decide"))
        heappush(self._events, (0.0, "measure"))
        coming, at, events = self._arrivals, 0, self._events
        while True:
            if at < len(coming) and coming[at] <= events[0][0]:
                self._come(coming[at])
                at += 1
                continue
            now, what = heappop(events)
            if now >= seconds:
                return self.outcome
            getattr(self, f"_{what}")(now)

    # -- requests --

    def _come(self, now: float) -> None:
        self._queue.append(now)
        self._work(now)

    def _work(self, now: float) -> None:
        while self._queue and self._idle:
            self.outcome.waits.append(now - self._queue.popleft())
            self._idle, self._busy = self._idle - 1, self._busy + 1
            heappush(self._events, (now + self._random.gammavariate(SHAPE, self._service / SHAPE), "done"))

    def _done(self, now: float) -> None:
        self._busy, self._answered = self._busy - 1, self._answered + 1
        if self._leaving:
            self._leaving -= 1
        else:
            self._idle += 1
            self._work(now)

    # -- workers --

    def _ready(self, now: float) -> None:
        if now in self._starting:
            self._starting.remove(now)
            self._idle += 1
            self._work(now)

    def _decide(self, now: float) -> None:
        heappush(self._events, (now + self._rule.interval, "decide"))
        ready = self._idle + self._busy - self._leaving
        present = ready + len(self._starting)
        oldest = now - self._queue[0] if self._queue else 0.0
        waiting = len(self._queue)
        wanted = self._rule.wanted(
            Reading(
                now,
                waiting,
                oldest,
                waiting,
                self._busy,
                self._answered,
                ready,
                len(self._starting),
                LEAST,
                MOST,
                self._load,
            )
        )
        self.outcome.decisions += wanted != present
        for _ in range(wanted - present):
            self._starting.append(now + self._load)
            heappush(self._events, (now + self._load, "ready"))
        for _ in range(present - wanted):
            self._remove()

    def _remove(self) -> None:
        if self._starting:
            self._starting.pop()
        elif self._idle:
            self._idle -= 1
        else:
            self._leaving += 1

    def _measure(self, now: float) -> None:
        heappush(self._events, (now + 1.0, "measure"))
        there = self._idle + self._busy + len(self._starting)
        outcome, needed = self.outcome, self._needed(now)
        outcome.worker_seconds += there
        outcome.above += max(there - needed, 0)
        outcome.missed += bool(self._queue) and now - self._queue[0] > self._target
        if now % STEP == 0:
            outcome.workers[now] = [float(there)]
