"""Arrival times and lengths of requests: Poisson arrivals with mixed lengths."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

PROMPT, OUTPUT = (16, 128), (8, 256)
"""Tokens, the ends included: prompts are uniform, outputs log-uniform."""


@dataclass(frozen=True)
class Arrival:
    at: float
    """Seconds after the first."""
    prompt: tuple[int, ...]
    """Token ids."""
    output: int
    """Tokens."""
    speculative: bool = True
    """False: without speculation, where the model has it."""


@dataclass
class Clients:
    """Clients of a model with so many tokens. No two of their prompts begin with the same token: a prefix that the
    cache holds would make one cheaper than the other."""

    vocabulary: int
    seed: int = 0
    asked: int = 0

    def poisson(self, count: int, rate: float) -> list[Arrival]:
        """`rate` a second; infinity: all at once. Whatever the rate, the same lengths, and the same gaps but shorter:
        what two rates differ in is not chance."""
        draw, at, made = random.Random(self.seed), 0.0, []
        for _ in range(count):
            made.append(Arrival(at / rate, self.prompt(draw.randint(*PROMPT)), _output(draw)))
            at += draw.expovariate(1.0)
        return made

    def alike(self, count: int, prompt: int, output: int) -> list[Arrival]:
        """All at once."""
        return [Arrival(0.0, self.prompt(prompt), output) for _ in range(count)]

    def prompt(self, length: int) -> tuple[int, ...]:
        self.asked += 1
        draw = random.Random(self.asked)
        return (self.asked % self.vocabulary, *(draw.randrange(self.vocabulary) for _ in range(length - 1)))


def mean_output(some: Sequence[Arrival]) -> float:
    return sum(one.output for one in some) / len(some)


def highest(holds: Callable[[float], bool], low: float, high: float, tries: int) -> float | None:
    """The highest rate of `tries` at which it holds, by bisection; None if it never does."""
    best = None
    for _ in range(tries):
        rate = math.sqrt(low * high)
        if holds(rate):
            best = low = rate
        else:
            high = rate
    return best


def _output(draw: random.Random) -> int:
    low, high = OUTPUT
    return min(int(math.exp(draw.uniform(math.log(low), math.log(high + 1)))), high)
