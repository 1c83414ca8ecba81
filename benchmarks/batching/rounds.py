"""Rounds: all settings get the same requests, in turn."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from benchmarks.batching.arrivals import ARRIVALS, poisson
from benchmarks.batching.curves import p99
from benchmarks.batching.settings import DYNAMIC, Setting
from benchmarks.load.open_loop import OpenLoop

LIMIT = 0.1
"""Seconds, TorchServe's default wait: a p99 beyond it is too high for a promise."""
FAR = 2.0
"""A setting whose p99 in the first round is so many times the best gets no more requests at this rate."""
PATIENCE = 1.0
PAUSE = 1.0
"""Seconds of pause after an overload: requests that the server still works on would disturb the next one."""
ENOUGH = 500
"""Requests of a turn, for a p99 of it; where few come, a turn takes up to LONGER times as long."""
LONGER = 2.5


@dataclass(frozen=True)
class Field:
    """All settings that take turns. `rates` are for every setting, `between` for the adaptive policy only."""

    client: OpenLoop
    settings: Sequence[Setting]
    body: bytes
    kind: str
    seconds: float
    rates: Sequence[float]
    between: Sequence[float] = ()

    def play(self, number: int) -> None:
        """One round. The same requests for all."""
        start = number % len(self.settings)
        for rate in sorted([*self.rates, *self.between]):
            due = ARRIVALS[self.kind](rate, self._lasting(rate), random.Random(number))
            best = min((one.first(rate) for one in self.settings), default=0.0)
            for setting in [*self.settings[start:], *self.settings[:start]]:
                if setting.name == DYNAMIC or (rate in self.rates and self._worth_it(setting, rate, best, number)):
                    self._ask(setting, rate, due)

    def _lasting(self, rate: float) -> float:
        return max(self.seconds, min(ENOUGH / rate, LONGER * self.seconds))

    def _worth_it(self, setting: Setting, rate: float, best: float, number: int) -> bool:
        if number:
            return setting.first(rate) <= FAR * best
        return all(p99(outcome) < inf for some in setting.outcomes.values() for outcome in some)

    def _ask(self, setting: Setting, rate: float, due: Sequence[float]) -> None:
        outcome = self.client.run(setting.address, setting.path, self.body, due, PATIENCE)
        setting.outcomes.setdefault(rate, []).append(outcome)
        if p99(outcome) > 2 * LIMIT:
            time.sleep(PAUSE)


def capacity(client: OpenLoop, setting: Setting, body: bytes) -> float:
    """Answered requests per second under overload."""
    rate = 20.0
    while True:
        outcome = client.run(setting.address, setting.path, body, poisson(rate, 0.5, random.Random(0)), 4.0)
        if p99(outcome) > LIMIT:
            return len(outcome.taken) / outcome.seconds
        rate *= 2


def warm_up(client: OpenLoop, setting: Setting, body: bytes) -> None:
    client.run(setting.address, setting.path, body, [n / 200 for n in range(100)], 5.0)
