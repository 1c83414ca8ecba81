"""Which devices a worker group gets of those that it may have: the least held ones, else TorchServe's order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

Weigh = Callable[[int], tuple[int, int]]
"""How many hold a device, and how many of them are groups."""


class Placement(NamedTuple):
    devices: tuple[int, ...]
    turn: int
    """Where the next search begins."""


def place_worker(candidates: Sequence[int], allowed: Sequence[int], turn: int, weigh: Weigh) -> Placement:
    """One of `allowed`, which is not empty: the least held one, of several the first in turn."""
    steps = [step for step in range(turn, turn + len(candidates)) if candidates[step % len(candidates)] in allowed]
    step = min(steps, key=lambda step: weigh(candidates[step % len(candidates)]))
    return Placement((candidates[step % len(candidates)],), step + 1)


def place_group(candidates: Sequence[int], allowed: Sequence[int], size: int, turn: int, weigh: Weigh) -> Placement:
    """`size` of `allowed`, which has as many: the least held ones, in a whole slice of `candidates` if there is one."""
    loosest = sorted(allowed, key=weigh)[:size]
    slices = {step: _slice(candidates, step, size) for step in range(turn, turn + len(candidates) // size)}
    whole = [step for step, devices in slices.items() if set(devices) <= set(allowed)]
    best = min(whole, key=lambda step: _total(slices[step], weigh), default=None)
    if best is None or _total(slices[best], weigh) > _total(loosest, weigh):
        return Placement(tuple(loosest), turn)
    return Placement(tuple(slices[best]), best + 1)


def _slice(candidates: Sequence[int], step: int, size: int) -> Sequence[int]:
    start = step % (len(candidates) // size) * size
    return candidates[start : start + size]


def _total(devices: Sequence[int], weigh: Weigh) -> tuple[int, int]:
    holders, groups = zip(*map(weigh, devices), strict=True)
    return sum(holders), sum(groups)
