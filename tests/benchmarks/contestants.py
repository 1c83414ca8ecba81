"""Servers of a contest that have had their turns."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.contests.contest import Contestant, Turn
from benchmarks.load.client import Address
from benchmarks.load.result import Result


def contestant(
    name: str, *rates: int, connections: int = 32, p50: int = 1, spent: Sequence[float] = (300.0, 100.0, 0.5)
) -> Contestant:
    """`spent`: µs of processor time a request, by process."""
    turns = [Turn(Result(rate, 1_000_000, p50, 1, 0), [*spent]) for rate in rates]
    return Contestant(name, Address("127.0.0.1", 1), "/", 1, {connections: turns})
