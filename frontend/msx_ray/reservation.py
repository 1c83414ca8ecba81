"""The bundles of one worker group in the cluster, from the request for them until they have been given back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

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


class ReservationEvents(Protocol):
    """Events of a reservation, for who asked for it, on the loop's thread."""

    def reservation_changed(self, reservation: Reservation) -> None:
        """`places`, `waits_for` or `lost` has changed."""


class ReservationAgents(Protocol):
    """The agents that start ranks at the places of a reservation."""

    def place_released(self) -> None:
        """Leave: the places are given back."""

    def place_lost(self, reason: str) -> None:
        """Expect no more agents. `reason` is a sentence without its full stop."""


class Reservation:
    """Owned by who made it with `Cluster.reserve`, which must `release` it."""

    def __init__(
        self,
        id: str,
        bundles: Bundles,
        release: Callable[[Reservation], None],
        events: ReservationEvents | None = None,
    ) -> None:
        self.id = id
        self.bundles = bundles
        self._release, self._events = release, events
        self._agents: ReservationAgents | None = None
        self.places: Sequence[Place] = ()
        """Places in the order of the ranks; empty until it has been granted."""
        self.waits_for = ""
        """Missing resources, a sentence without its full stop; "" when nothing is missing, or that is not known yet."""
        self.lost = ""
        """Why it must be released, a sentence without its full stop: a node has left, say."""

    def attach(self, agents: ReservationAgents) -> None:
        """Tell these agents, which come for it, of its end."""
        self._agents = agents

    def changed(self) -> None:
        if self._events is not None:
            self._events.reservation_changed(self)

    def wait(self, reason: str) -> None:
        """`reason` is a sentence without its full stop."""
        if reason != self.waits_for:
            self.waits_for = reason
            self.changed()

    def lose(self, reason: str) -> None:
        """`reason` is a sentence without its full stop. The first one counts."""
        if not self.lost:
            self.lost = reason
            if self._agents is not None:
                self._agents.place_lost(reason)
            self.changed()

    @property
    def granted(self) -> bool:
        return bool(self.places) and not self.lost

    def release(self) -> None:
        """Its bundles are given back. What runs there must have ended before. Idempotent."""
        if self._agents is not None:
            self._agents.place_released()
        self._release(self)
