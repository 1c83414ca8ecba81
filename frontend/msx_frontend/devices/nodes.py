"""Where the ranks of a worker group run, if not on this machine."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from msx_frontend.devices.accelerator import Device
from msx_frontend.devices.choose import accelerator_of, visible_variables


@dataclass(frozen=True)
class Share:
    """Ranks of a worker group on one node, and their devices."""

    node: str
    """The node's host name, as people know it."""
    address: str
    """Where other nodes reach it."""
    ranks: tuple[int, ...]
    """Which ranks run there, in ascending order."""
    devices: tuple[str, ...] = ()
    """The driver's names of the devices, in its order; none for ranks on the CPU."""
    node_id: str = ""
    """Tells nodes apart that are on one host."""


class OnNode(NamedTuple):
    """Where one rank is on its node, among the ranks of its group there."""

    local_rank: int
    local_ranks: int
    devices: tuple[str, ...]
    """All that the group has on the node: each of its ranks sees them, as on one machine."""

    @property
    def device_id(self) -> int | None:
        """Which of them is the rank's own; None on the CPU."""
        return self.local_rank if self.devices else None


@dataclass(frozen=True)
class GroupPlacement:
    """One share a bundle of the cluster's placement group, in the order of the bundles."""

    id: str
    shares: tuple[Share, ...]
    resource: str = "CPU"
    """The cluster's name of what each rank has one of."""

    def share_of(self, rank: int) -> Share:
        return next(share for share in self.shares if rank in share.ranks)

    def place_of(self, rank: int) -> OnNode:
        node = self.share_of(rank).node_id
        here = [share for share in self.shares if share.node_id == node]
        ranks = sorted(one for share in here for one in share.ranks)
        return OnNode(ranks.index(rank), len(ranks), in_drivers_order(name for one in here for name in one.devices))

    def environment_of(self, rank: int) -> Mapping[str, str]:
        """The variables that show a rank all devices of its group on its node; a rank on the CPU sees none of any."""
        devices = [Device(name, self.resource) for name in self.place_of(rank).devices]
        if not devices:
            return dict.fromkeys(visible_variables(), "")
        return accelerator_of(self.resource)().environment(devices)

    @property
    def nodes(self) -> list[str]:
        """The hosts, each once."""
        return list(dict.fromkeys(share.node for share in self.shares))

    @property
    def devices(self) -> dict[str, list[str]]:
        """Driver's names by host."""
        found: dict[str, list[str]] = {}
        for share in self.shares:
            found.setdefault(share.node, []).extend(share.devices)
        return {node: list(in_drivers_order(names)) for node, names in found.items()}

    def in_words(self) -> str:
        """`ranks 0, 1 on node-a (devices 0,1), rank 2 on node-b`."""
        parts = []
        for node in self.nodes:
            ranks = sorted(rank for share in self.shares if share.node == node for rank in share.ranks)
            names = ",".join(self.devices[node])
            numbers = f"ranks {', '.join(map(str, ranks))}" if len(ranks) > 1 else f"rank {ranks[0]}"
            parts.append(f"{numbers} on {node}" + (f" (devices {names})" if names else ""))
        return "; ".join(parts)


def in_drivers_order(names: Iterable[str]) -> tuple[str, ...]:
    """Ascending by number, as CANN takes them."""
    return tuple(sorted(names, key=lambda name: (len(name), name)))
