"""Which devices a worker group gets of those that it may have: the least held ones, in TorchServe's order.

The ranks of one group get devices that lie close together.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from msx_frontend.devices.topology import Spread, Topology

Weigh = Callable[[int], tuple[int, int]]
"""How many worker groups hold a device, and how many of them are parallel groups."""
Rank = Callable[[int], tuple[int, ...]]
"""Place of a device in the order of choice: the lowest is taken first."""


class Placement(NamedTuple):
    devices: tuple[int, ...]
    turn: int
    """Where the next search begins."""


def place_worker(candidates: Sequence[int], allowed: Sequence[int], turn: int, rank: Rank) -> Placement:
    """One of `allowed`, which is not empty: the lowest by `rank`, of several the first in turn."""
    steps = [step for step in range(turn, turn + len(candidates)) if candidates[step % len(candidates)] in allowed]
    step = min(steps, key=lambda step: rank(candidates[step % len(candidates)]))
    return Placement((candidates[step % len(candidates)],), step + 1)


def place_group(
    candidates: Sequence[int], allowed: Sequence[int], size: int, turn: int, weigh: Weigh, topology: Topology
) -> Placement:
    """`size` of `allowed`, which has as many: the least held ones, of these those that lie closest together.

    Of several such sets a whole slice of `candidates` is taken, the first in turn.
    """
    best = _closest(allowed, size, weigh, topology)
    slices = {step: _slice(candidates, step, size) for step in range(turn, turn + len(candidates) // size)}
    whole = [step for step, devices in slices.items() if set(devices) <= set(allowed)]
    step = min(whole, key=lambda step: _rank(slices[step], weigh, topology), default=None)
    if step is None or _rank(slices[step], weigh, topology) > _rank(best, weigh, topology):
        return Placement(tuple(best), turn)
    return Placement(tuple(slices[step]), step + 1)


def _closest(allowed: Sequence[int], size: int, weigh: Weigh, topology: Topology) -> Sequence[int]:
    """The least held devices; the topology chooses among those that have as many holders as the last one needed."""
    loosest = sorted(allowed, key=weigh)
    if not topology.known:
        return loosest[:size]
    last = weigh(loosest[size - 1])
    required = [device for device in loosest if weigh(device) < last]
    return topology.closest(required, [device for device in loosest if weigh(device) == last], size)


def _slice(candidates: Sequence[int], step: int, size: int) -> Sequence[int]:
    start = step % (len(candidates) // size) * size
    return candidates[start : start + size]


def _rank(devices: Sequence[int], weigh: Weigh, topology: Topology) -> tuple[tuple[int, int], Spread]:
    holders, groups = zip(*map(weigh, devices), strict=True)
    return (sum(holders), sum(groups)), topology.spread(devices) if topology.known else (0, 0)
