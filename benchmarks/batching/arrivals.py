"""Arrival times of requests: random, or in bursts."""

from __future__ import annotations

import random
from collections.abc import Callable

ON, OFF = 0.02, 0.06
"""Seconds that a burst lasts, and the pause after it, on average: within one, four times the mean rate."""


def poisson(rate: float, seconds: float, draw: random.Random) -> list[float]:
    """The same `draw` gives the same gaps at every rate, scaled to it."""
    due: list[float] = []
    at = draw.expovariate(rate)
    while at < seconds or not due:
        due.append(at)
        at += draw.expovariate(rate)
    return due


def bursty(rate: float, seconds: float, draw: random.Random) -> list[float]:
    """Poisson arrivals that are switched on and off, for exponential times."""
    due: list[float] = []
    begin = 0.0
    while begin < seconds or not due:
        end = begin + draw.expovariate(1 / ON)
        at = begin + draw.expovariate(rate * (ON + OFF) / ON)
        while at < end:
            due.append(at)
            at += draw.expovariate(rate * (ON + OFF) / ON)
        begin = end + draw.expovariate(1 / OFF)
    return due


ARRIVALS: dict[str, Callable[[float, float, random.Random], list[float]]] = {"poisson": poisson, "bursty": bursty}
