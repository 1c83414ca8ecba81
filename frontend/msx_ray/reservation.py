"""The bundles of one worker group in the cluster, from the request for them until they have been given back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from msx_ray.messages import Place

CPU = "CPU"
"""Ray's resource of ranks without devices."""


@dataclass(frozen=True)
class Bundles:
    """Bundles of a group, each on one node. `ranks` says how many ranks each bundle has."""

    resources: tuple[dict[str, float], ...]
    ranks: tuple[int, ...]
    strategy: str = "PACK"

    @property
    def resource(self) -> str:
        """The kind of device that its ranks have."""
        return device_in(self.resources[0])


def device_in(bundle: Mapping[str, float]) -> str:
    """The kind of device in a bundle; CPU where it has none."""
    return next((name for name in bundle if name != CPU), CPU)


class Reservation:
    """Owned by who made it with `Cluster.reserve`, which must `release` it. Callbacks run on the loop's thread."""

    def __init__(self, id: str, bundles: Bundles, release: Callable[[Reservation], None]) -> None:
        self.id = id
        self.bundles = bundles
        self._release = release
        self.places: Sequence[Place] = ()
        """In the order of the ranks; empty until it has been granted."""
        self.waits_for = ""
        """Missing resources, a sentence without its full stop; "" when nothing is missing, or that is not known yet."""
        self.lost = ""
        """Why it must be released, a sentence without its full stop: a node has left, say."""
        self.changed: Callable[[], None] = lambda: None
        """Called when `places`, `waits_for` or `lost` has changed."""
        self.released: Callable[[], None] = lambda: None
        """Called when it is released: its agents leave."""
        self.dropped: Callable[[], None] = lambda: None
        """Called when it is lost: agents that are awaited will not come."""

    def wait(self, reason: str) -> None:
        """`reason` is a sentence without its full stop."""
        if reason != self.waits_for:
            self.waits_for = reason
            self.changed()

    def lose(self, reason: str) -> None:
        """`reason` is a sentence without its full stop. The first one counts."""
        if not self.lost:
            self.lost = reason
            self.dropped()
            self.changed()

    @property
    def granted(self) -> bool:
        return bool(self.places) and not self.lost

    def release(self) -> None:
        """Its bundles are given back. What runs there must have ended before. Idempotent."""
        self.released()
        self._release(self)
