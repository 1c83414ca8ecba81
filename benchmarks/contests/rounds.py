"""The rounds of a contest: beside another checkout as many as it takes to tell a loss from noise."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from benchmarks.cli.benchmark import progress
from benchmarks.contests.before import Pair

LEAST = 10
"""Rounds beside another checkout, however alike they are."""
MOST = 60
WIDTH = 0.02
"""Width of the 95 % interval of a median ratio at which no further round is needed."""


def settling_rounds(name: str, planned: int, pairs: Callable[[], Sequence[Pair]]) -> Iterator[int]:
    """Yield the numbers of the rounds: `planned` of them, and more while the ratios of `pairs` are not settled."""
    number = 0
    while number < planned or not settled(number, pairs()):
        yield number
        number += 1
        progress(f"{name}: round {number}")


def settled(played: int, pairs: Sequence[Pair]) -> bool:
    """Say whether no ratio needs a further round; MOST rounds are the end in any case."""
    if not pairs or played >= MOST:
        return True
    return played >= LEAST and all(pair.interval().width <= WIDTH for pair in pairs)
