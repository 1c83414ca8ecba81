"""Clients of a model of fixed cost beside a batch without end, by a clock of its own: p99, and what lines get."""

from __future__ import annotations

import heapq
import random
from collections import deque
from collections.abc import Mapping
from itertools import count
from typing import Any, NamedTuple

import pytest

from msx_frontend.batches.line_pass import POLL
from msx_frontend.batches.rooms import LinePlace, LineTurns, ModelRoom

SECONDS, REQUESTS, MOST_P99 = 0.02, 5000, 1.1


class Outcome(NamedTuple):
    p99: float
    lines: float
    """Part of the workers' time."""


class Simulation:
    """So many workers, of which clients use the part `load`, at random instants."""

    def __init__(self, workers: int, load: float, *, beside_lines: bool) -> None:
        self._workers, self._now, self._busy, self._answered, self._lines = workers, 0.0, 0, 0, 0
        self._waiting: deque[float] = deque()
        self._taken: list[float] = []
        self._events: list[tuple[float, int, str, Any]] = []
        self._number = count()
        self._turns = LineTurns(self._room, 0.5, lambda: self._now) if beside_lines else None
        draw, at = random.Random(1), 0.0
        for _ in range(REQUESTS):
            at += draw.expovariate(load * workers / SECONDS)
            self._at(at, "comes", at)
        self._end = at
        self._at(0.0, "polls", None)

    def run(self) -> Outcome:
        while len(self._taken) < REQUESTS:
            self._now, _, kind, of = heapq.heappop(self._events)
            getattr(self, f"_{kind}")(of)
            while self._waiting and self._busy < self._workers:
                self._begin("answers", self._waiting.popleft())
            if kind != "comes":
                self._start_lines()
        taken = sorted(self._taken)
        return Outcome(taken[REQUESTS * 99 // 100], self._lines * SECONDS / self._end / self._workers)

    def _room(self, names: Mapping[str, str], model: str) -> ModelRoom:
        waits = bool(self._waiting)
        return ModelRoom("m", self._workers, self._busy + len(self._waiting), waits, waits, self._answered)

    def _at(self, when: float, kind: str, of: Any) -> None:
        heapq.heappush(self._events, (when, next(self._number), kind, of))

    def _begin(self, kind: str, of: Any) -> None:
        self._busy += 1
        self._at(self._now + SECONDS, kind, of)

    def _start_lines(self) -> None:
        while self._turns is not None and (place := self._turns.take({}, "m", "")) is not None:
            self._begin("ends", place)

    def _comes(self, at: float) -> None:
        self._waiting.append(at)

    def _answers(self, came: float) -> None:
        self._taken.append(self._now - came)
        self._answered += 1
        self._busy -= 1

    def _ends(self, place: LinePlace) -> None:
        assert self._turns is not None
        self._answered += 1
        self._lines += 1
        self._turns.give_back(place)
        self._busy -= 1

    def _polls(self, _: None) -> None:
        self._at(self._now + POLL, "polls", None)


@pytest.mark.parametrize(
    ("workers", "load", "lines"), [(1, 0.1, 0.04), (1, 0.5, 0.1), (4, 0.1, 0.2), (4, 0.5, 0.05), (8, 0.1, 0.35)]
)
def test_p99_beside_a_batch(workers: int, load: float, lines: float) -> None:
    """And what lines get meanwhile, at least, of the workers' time."""
    alone = Simulation(workers, load, beside_lines=False).run()
    beside = Simulation(workers, load, beside_lines=True).run()
    assert beside.p99 <= alone.p99 * MOST_P99
    assert beside.lines >= lines
    assert alone.lines == 0
