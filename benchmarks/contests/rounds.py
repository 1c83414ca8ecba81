"""The rounds of a contest: beside another checkout as many as it takes to tell a loss from noise."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from benchmarks.cli.benchmark import progress
from benchmarks.contests.before import Pair, name_before
from benchmarks.contests.contest import Contestant, Load, LoadProgram
from benchmarks.contests.interleaved import play_alternating, play_interleaved

LEAST = 10
"""Rounds beside another checkout, however alike they are."""
MOST = 60
WIDTH = 0.02
"""Width of the 95 % interval of a median ratio at which no further round is needed."""


def settling_rounds(name: str, planned: int, pairs: Callable[[], Sequence[Pair]], most: int = MOST) -> Iterator[int]:
    """Yield the numbers of the rounds: `planned` of them, and more, up to `most`, while the ratios of `pairs` are not
    settled."""
    number = 0
    while number < planned or not settled(number, pairs(), most):
        yield number
        number += 1
        progress(f"{name}: round {number}")


def settled(played: int, pairs: Sequence[Pair], most: int = MOST) -> bool:
    """Say whether no ratio needs a further round; `most` rounds are the end in any case."""
    if not pairs or played >= most:
        return True
    return played >= LEAST and all(pair.interval().width <= WIDTH for pair in pairs)


def play_round(
    load_of: Callable[[Contestant], Load], contestants: Sequence[Contestant], connections: Sequence[int], seconds: float
) -> None:
    """Each contestant takes a turn; a server and the one of another checkout share theirs, where the load can."""
    pairs, alone = paired(contestants)
    for count in connections:
        for pair in pairs:
            loads = [load_of(one) for one in pair]
            programs = [load for load in loads if isinstance(load, LoadProgram)]
            if len(programs) == len(pair):
                play_interleaved(pair, programs, count, seconds)
            else:
                play_alternating(pair, loads, count, seconds)
        for one in alone:
            one.take(load_of(one), count, seconds)


def paired(contestants: Sequence[Contestant]) -> tuple[list[tuple[Contestant, Contestant]], list[Contestant]]:
    """Each server beside the one of another checkout, in their order, and all others."""
    names = {one.name: one for one in contestants}
    pairs = [(one, names[name_before(one.name)]) for one in contestants if name_before(one.name) in names]
    taken = {one.name for pair in pairs for one in pair}
    order = [one.name for one in contestants].index
    ordered = [(a, b) if order(a.name) < order(b.name) else (b, a) for a, b in pairs]
    return ordered, [one for one in contestants if one.name not in taken]
