"""Where the ranks of a worker group run, if not on this machine."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Share:
    """What one node gives to a worker group."""

    node: str
    """The node's host name, as people know it."""
    address: str
    """Where other nodes reach it."""
    ranks: tuple[int, ...]
    """Which ranks run there, in ascending order."""
    devices: tuple[str, ...] = ()
    """The driver's names of the devices, in its order; none for ranks on the CPU."""


@dataclass(frozen=True)
class Placement:
    """One share a bundle of the cluster's placement group, in the order of their ranks."""

    id: str
    shares: tuple[Share, ...]

    def share_of(self, rank: int) -> Share:
        return next(share for share in self.shares if rank in share.ranks)

    @property
    def nodes(self) -> list[str]:
        """The hosts, each once."""
        return list(dict.fromkeys(share.node for share in self.shares))
