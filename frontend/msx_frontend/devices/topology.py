"""How well the devices of a machine are connected, and which of them lie closest together."""

from collections.abc import Mapping, Sequence
from itertools import combinations

from msx_frontend.devices.accelerator import Device, Links

MOST_DEVICES = 16
"""Number above which the search would take too long for the server's loop: then the topology counts as unknown."""

Spread = tuple[int, int]
"""The slowest link within a set of devices, and the sum of all of its links: the lower, the closer together."""


class Topology:
    """Costs of links by the server's numbers of the devices. A pair without a known link counts as worse than any known
    one."""

    def __init__(self, devices: Sequence[Device], links: Links) -> None:
        self.known = bool(links) and len(devices) <= MOST_DEVICES
        unknown = max(links.values(), default=0) + 1
        self._costs = [[_cost(links, a.id, b.id, unknown) for b in devices] for a in devices]

    def spread(self, devices: Sequence[int]) -> Spread:
        costs = [self._costs[a][b] for a, b in combinations(devices, 2)]
        return max(costs, default=0), sum(costs)

    def closest(self, required: Sequence[int], others: Sequence[int], size: int) -> list[int]:
        """`size` devices: all `required` ones, and those of `others` with which the set lies close together.

        From each of `others` a set grows by the device that adds least, at most 16 sets of 16 devices. The devices of
        the best one are exchanged for others as long as that helps.
        """
        if len(required) == size:
            return list(required)
        best = min((self._grown([*required, seed], others, size) for seed in others), key=self.spread)
        return self._improved(best, required, others)

    def _grown(self, devices: list[int], others: Sequence[int], size: int) -> list[int]:
        left = [device for device in others if device not in devices]
        while len(devices) < size:
            nearest = min(left, key=lambda device: (_added(self._costs[device], devices), self._nearest(device, left)))
            left.remove(nearest)
            devices.append(nearest)
        return sorted(devices)

    def _nearest(self, device: int, left: Sequence[int]) -> int:
        """The cost to the closest device that is left: a close neighbour lets the next step add little."""
        return min((self._costs[device][other] for other in left if other != device), default=0)

    def _improved(self, devices: list[int], required: Sequence[int], others: Sequence[int]) -> list[int]:
        """Exchanges one device at a time, while that brings the set closer together."""
        while True:
            kept = [[one for one in devices if one != out] for out in devices if out not in required]
            sets = (sorted([*rest, new]) for rest in kept for new in others if new not in devices)
            better = min(sets, key=self.spread, default=devices)
            if self.spread(better) >= self.spread(devices):
                return devices
            devices = better


def _cost(links: Mapping[tuple[str, str], int], a: str, b: str, unknown: int) -> int:
    return max(links.get((a, b), unknown), links.get((b, a), unknown))


def _added(costs: Sequence[int], devices: Sequence[int]) -> Spread:
    to_each = [costs[device] for device in devices]
    return max(to_each), sum(to_each)
