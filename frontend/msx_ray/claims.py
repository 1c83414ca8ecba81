"""The claim of a worker group in a cluster: its place, and how it gets another one."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterator

from msx_core.config import ModelConfig
from msx_frontend.plugins.accelerators import Device, accelerator_of
from msx_frontend.plugins.launchers import ClaimState, Figure, Lease, Shortage
from msx_ray.bundles import bundles_of
from msx_ray.cluster import Cluster
from msx_ray.placements import placement_of
from msx_ray.reservation import Bundles, Reservation
from msx_ray.room import missing_room

log = logging.getLogger("msx.cluster")

PAUSE = 5.0
"""Seconds after which another place is asked for, where the last one was lost before a group ran in it."""

SETTLED = 30.0
"""Seconds after which a group is believed to have run in its place."""


class ClusterClaim(ClaimState):
    """See `GroupClaim`. It keeps its place over the generations of a group, and waits for another in Ray's own line."""

    def __init__(
        self, cluster: Cluster, model_key: str, config: ModelConfig, released: Callable[[ClusterClaim], None]
    ) -> None:
        super().__init__()
        self.model_key, self.config = model_key, config
        self._cluster, self._released = cluster, released
        self.bundles: Bundles | None = None
        """Bundles requested from Ray; None while the cluster is not known yet."""
        self._reservation: Reservation | None = None
        self._closed = False
        self._granted_at = self._not_before = 0.0
        self._last_loss = ""
        """Why its last place is gone; "" once it has another."""
        self.look()

    @property
    def phase(self) -> str:
        return "" if self.lease is not None or self.shortage is not None else "being placed in the cluster"

    def ranks(self) -> Iterator[Figure]:
        """A gauge for each of its ranks that has a place."""
        placement = self.lease.placement if self.lease is not None else None
        model, _, version = self.model_key.rpartition(":")
        for share in placement.shares if placement is not None else ():
            for rank in share.ranks:
                yield "msx_rank_node", (model, version, str(self.worker), str(rank), share.node), 1.0

    async def turn(self) -> None:
        """Starts on other machines are not in line for this one's memory and cores."""

    def started(self) -> None:
        """See `turn`."""

    def release(self) -> None:
        if not self._closed:
            self._closed = True
            self._released(self)
            self._give_back()

    def renew(self) -> None:
        if self.revoked:
            self._last_loss, self.revoked = self.revoked, ""
            self._satisfied.clear()
            self._give_back()
            if time.monotonic() - self._granted_at < SETTLED:
                self._pause()
            self.look()

    def look(self) -> None:
        """Look for what it lacks, after something has changed in the cluster or with its reservation."""
        if self._closed or self.lease is not None:
            return
        if self._reservation is not None and self._reservation.lost:
            self._last_loss = self._reservation.lost
            self._give_back()
            self._pause()
        if time.monotonic() >= self._not_before:
            self._ask()
        if not self._grant():
            self._lacks(self._missing())

    def _pause(self) -> None:
        self._not_before = time.monotonic() + PAUSE
        asyncio.get_running_loop().call_later(PAUSE + 0.01, self.look)

    def _ask(self) -> None:
        """Another shape of the group is asked for where the cluster has changed so that it would wait for nothing."""
        if not self._cluster.nodes:
            return
        bundles = bundles_of(self.config, self._cluster.nodes)
        if self._reservation is not None and self._outdated(self._reservation, bundles):
            self._give_back()
        if self._reservation is None:
            self.bundles = bundles
            self._reservation = self._cluster.reserve(bundles, self)

    def _outdated(self, reservation: Reservation, bundles: Bundles) -> bool:
        """Whether it waits for one node with all, or for another kind of device, and there is a better way now."""
        if reservation.places or not reservation.waits_for or self.bundles is None:
            return False
        other_device = bundles.resource != self.bundles.resource
        return other_device or (self.bundles.strategy, bundles.strategy) == ("STRICT_PACK", "PACK")

    def reservation_changed(self, reservation: Reservation) -> None:
        if reservation is not self._reservation:  # it has been given back
            return
        if reservation.lost and self.lease is not None:
            self.revoke(reservation.lost)
        else:
            self.look()

    def _grant(self) -> bool:
        reservation = self._reservation
        if reservation is None or not reservation.granted:
            return False
        self.lease = _lease(self.model_key, reservation)
        self._granted_at, self._last_loss = time.monotonic(), ""
        self._lacks(None)
        self._satisfied.set()
        return True

    def _missing(self) -> Shortage | None:
        """None while Ray may grant it at once."""
        reservation, cluster = self._reservation, self._cluster
        if cluster.problem:
            return Shortage("cluster", f"{self.model_key} waits for the cluster: {cluster.problem.rstrip('.')}")
        if reservation is None and self._last_loss:
            return Shortage("cluster", f"{self.model_key} waits for another place in the cluster: {self._last_loss}")
        if reservation is None:
            return Shortage("cluster", f"{self.model_key} waits for the nodes of the cluster")
        if reservation.waits_for and self.bundles is not None:
            return Shortage("devices", f"{self.model_key} {missing_room(self.bundles, cluster.nodes)}")
        return None

    def _lacks(self, shortage: Shortage | None) -> None:
        before, self.shortage = self.shortage, shortage
        if before != shortage:
            self.changed()

    def _give_back(self) -> None:
        reservation, self._reservation, self.lease = self._reservation, None, None
        if reservation is not None:
            reservation.release()


def _lease(model_key: str, reservation: Reservation) -> Lease:
    placement = placement_of(reservation)
    names = [name for share in placement.shares for name in share.devices]
    log.info("%s is placed: %s", model_key, placement.in_words())
    devices = tuple(Device(name, placement.resource) for name in names)
    kind = accelerator_of(placement.resource)
    return Lease(model_key, devices=devices, framework=kind.framework, torch=kind.torch, placement=placement)
