"""Divides the layers of a pipeline among its stages."""

from collections.abc import Sequence
from itertools import accumulate, pairwise


def balance(weights: Sequence[int], stages: int) -> list[range]:
    """Divides a list of layers into `stages` non-empty runs whose heaviest is as light as possible. Raises ValueError
    if there are fewer layers than stages."""
    if len(weights) < stages:
        raise ValueError(f"a model of {len(weights)} layers cannot be divided into {stages} pipeline stages")
    total = [0, *accumulate(weights)]
    # best[n]: the heaviest run, and where the last run begins, of the first n layers in as many runs as so far.
    best = {n: (total[n], 0) for n in range(1, len(weights) + 1)}
    begins = [best]
    for runs in range(2, stages + 1):
        best = {n: _best_cut(total, begins[-1], n, runs) for n in range(runs, len(weights) + 1)}
        begins.append(best)
    return _follow(begins, len(weights))


def _best_cut(total: Sequence[int], before: dict[int, tuple[int, int]], n: int, runs: int) -> tuple[int, int]:
    return min((max(before[cut][0], total[n] - total[cut]), cut) for cut in range(runs - 1, n))


def _follow(begins: list[dict[int, tuple[int, int]]], end: int) -> list[range]:
    cuts = [end]
    for best in reversed(begins):
        cuts.append(best[cuts[-1]][1])
    cuts.reverse()
    return [range(first, last) for first, last in pairwise(cuts)]
