"""When requests come: made by chance from a seed, the same each time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import cos, pi
from random import Random

SEED = 18
HOUR = 3600.0


@dataclass(frozen=True)
class Pattern:
    name: str
    seconds: float
    rate: Callable[[float], float]
    """Requests per second at an instant, on average."""
    burst: int = 0
    """Requests that come at once besides, every `every` seconds."""
    every: float = 0.0

    @property
    def mean(self) -> float:
        """Mean without bursts."""
        return sum(map(self.rate, range(int(self.seconds)))) / self.seconds

    @property
    def mean_with_bursts(self) -> float:
        return self.mean + (self.burst / self.every if self.burst else 0.0)

    @property
    def peak(self) -> float:
        return max(map(self.rate, range(int(self.seconds))))

    def arrivals(self) -> list[float]:
        """Instants, in their order."""
        random = Random(f"{SEED} {self.name}")  # the same each time
        return sorted([*self._steady(random), *self._bursts(random)])

    def _steady(self, random: Random) -> Iterator[float]:
        now, most = 0.0, self.peak
        while (now := now + random.expovariate(most)) < self.seconds:
            if random.random() * most < self.rate(now):
                yield now

    def _bursts(self, random: Random) -> Iterator[float]:
        if self.burst:
            for number in range(1, int(self.seconds / self.every)):
                yield from (number * self.every + random.random() for _ in range(self.burst))


def steps(now: float) -> float:
    """A new level every ten minutes."""
    levels = (4.0, 20.0, 8.0, 40.0, 12.0, 2.0)
    return levels[int(now / 600) % len(levels)]


def _noise() -> list[float]:
    """Noise of each minute of a day: 15 % more or less, which lasts for some minutes."""
    random, level, found = Random(SEED), 0.0, list[float]()
    for _ in range(24 * 60):
        level = 0.8 * level + random.gauss(0, 0.09)
        found.append(1 + level)
    return found


NOISE = _noise()


def day(now: float) -> float:
    """Little at night, most in the afternoon; at eleven three times as much for eight minutes."""
    hour = now / HOUR % 24
    usual = 1.5 + 12 * (1 - cos((hour - 3) / 24 * 2 * pi)) / 2
    spike = 3.0 if 11 <= hour < 11 + 8 / 60 else 1.0
    return usual * spike * max(NOISE[int(now / 60) % len(NOISE)], 0.1)


def patterns(hours: float, of_others: float = 1.0) -> list[Pattern]:
    """`hours` of the day, from midnight on, and of each of the others."""
    return [
        Pattern("steps", of_others * HOUR, steps),
        Pattern("bursts", of_others * HOUR, lambda now: 3.0, burst=40, every=120.0),
        Pattern("day", hours * HOUR, day),
    ]
