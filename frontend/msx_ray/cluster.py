"""The cluster as the server sees it: whether it is there, its nodes, and what this server has reserved of it."""

import asyncio
import contextlib
import logging
import secrets
from collections import Counter
from collections.abc import Sequence
from typing import Protocol

import msgspec

from msx_frontend.plugins.accelerators import accelerator_of, resources_of_devices
from msx_ray.driver_process import DriverProcess
from msx_ray.messages import (
    ClusterNode,
    Connected,
    FromDriver,
    Lost,
    Nodes,
    OrphanRemoved,
    Pending,
    Remove,
    Removed,
    ReservationRefused,
    Reserve,
    Reserved,
    StartAgents,
    Unreachable,
)
from msx_ray.reservation import Bundles, Reservation, ReservationEvents

log = logging.getLogger("msx.cluster")

REMOVE_LIMIT = 5.0
"""Seconds that the cluster has to take back what was released when the server stops."""

CONNECTING = "The server is still connecting to the cluster."


class ClusterEvents(Protocol):
    """Events of the cluster, on the loop's thread."""

    def cluster_changed(self) -> None:
        """`problem` or `nodes` has changed."""


class Cluster:
    """Owns the driver. Nothing here blocks: who asks for a reservation hears of its events.

    While the driver is away nothing is placed, and what has been granted stays: the holders of the bundles and the
    agents do not depend on it.
    """

    def __init__(self, address: str, server_id: str = "", devices: Sequence[str] | None = None) -> None:
        """`devices`: Ray's names of the devices that models may run on, in the order of preference; None for all."""
        self.address = address
        self._devices = resources_of_devices() if devices is None else devices
        self._kinds: Sequence[str] = ()
        """Kinds that the nodes have of these."""
        self.gcs = self.ray_version = ""
        """Where the head answers, host:port, and which version of Ray it has; "" before the first connection."""
        self.id = server_id or secrets.token_hex(6)
        """Names what this server has reserved, so that two servers share a cluster."""
        self.problem = CONNECTING
        """Why nothing can be placed now, a sentence; "" while the cluster is there."""
        self.nodes: Sequence[ClusterNode] = ()
        """As they were when the driver last told, with the devices that models may run on."""
        self._events: ClusterEvents | None = None
        self._gone: Counter[str] = Counter()
        """How many nodes of a name have left, and are not back."""
        self._reservations: dict[str, Reservation] = {}
        self._removing: set[str] = set()
        self._all_removed = asyncio.Event()
        self._all_removed.set()
        self._driver = DriverProcess(["--address", address, "--server", self.id], self._received, self._driver_started)

    def attach(self, events: ClusterEvents) -> None:
        """Tell `events` of its changes from now on."""
        self._events = events

    def start(self) -> None:
        self._driver.start()

    async def close(self) -> None:
        """Call this when the reservations have been released."""
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._all_removed.wait(), REMOVE_LIMIT if not self.problem else 0)
        await self._driver.close()

    @property
    def driver_pid(self) -> int | None:
        return self._driver.pid

    @property
    def reservations(self) -> list[Reservation]:
        return list(self._reservations.values())

    def reserve(self, bundles: Bundles, events: ReservationEvents | None = None) -> Reservation:
        """Ask for the bundles. The reservation waits until there is room, in the order of asking."""
        made = Reservation(f"msx-{self.id}-{secrets.token_hex(4)}", bundles, self._release, events)
        made.waits_for = self.problem.rstrip(".")
        self._reservations[made.id] = made
        self._driver.send(_request(made))
        return made

    def start_agents(self, reservation: Reservation, addresses: Sequence[str], port: int, key: str, pin: str) -> None:
        """Agents of all its bundles dial one of the addresses. Where one cannot be started the reservation is lost."""
        self._driver.send(StartAgents(reservation.id, list(addresses), port, key, pin))

    def _release(self, reservation: Reservation) -> None:
        if self._reservations.pop(reservation.id, None) is not None:
            self._removing.add(reservation.id)
            self._all_removed.clear()
            self._driver.send(Remove(reservation.id))

    def _driver_started(self) -> None:
        """It is told again what the one before it may not have done."""
        for id in self._removing:
            self._driver.send(Remove(id))
        for reservation in self._reservations.values():
            if not reservation.places:
                self._driver.send(_request(reservation))

    def _received(self, message: FromDriver) -> None:
        if isinstance(message, (Connected, Unreachable, Nodes)):
            self._cluster_changed(message)
        elif isinstance(message, OrphanRemoved):
            log.warning("the reservation %s was removed from the cluster: its server is gone", message.id)
        elif isinstance(message, Removed):
            self._removing.discard(message.id)
            if not self._removing:
                self._all_removed.set()
        elif (reservation := self._reservations.get(message.id)) is not None:
            _apply(reservation, message)

    def _cluster_changed(self, message: Connected | Unreachable | Nodes) -> None:
        if isinstance(message, Connected):
            log.info("connected with the cluster at %s (Ray %s)", message.address, message.ray_version)
            self.problem, self.gcs, self.ray_version = "", message.address, message.ray_version
            self._forgotten(set(message.kept))
        elif isinstance(message, Unreachable):
            if message.reason != self.problem:
                log.error("%s", message.reason)
            self.problem = message.reason
        else:
            self._log_nodes(message.nodes)
            self.nodes = [_allowed(node, self._devices) for node in message.nodes]
            self._log_kinds()
        for reservation in self.reservations:
            if not reservation.places and self.problem:
                reservation.wait(self.problem.rstrip("."))
        if self._events is not None:
            self._events.cluster_changed()

    def _forgotten(self, kept: set[str]) -> None:
        """A cluster that was made anew does not know what the one before it had granted."""
        for reservation in self.reservations:
            if reservation.places and reservation.id not in kept:
                reservation.lose("the cluster was started anew and does not know this worker's devices")

    def _log_nodes(self, nodes: Sequence[ClusterNode]) -> None:
        before, after = ({node.id: node.name for node in some if node.alive} for some in (self.nodes, nodes))
        for id in (id for id in before if id not in after):
            self._gone[before[id]] += 1
            log.warning("node %s has left the cluster", before[id])
        for id in (id for id in after if id not in before):
            back = self._gone[after[id]] > 0
            self._gone[after[id]] -= back
            log.info("node %s %s the cluster", after[id], "is back in" if back else "has joined")

    def _log_kinds(self) -> None:
        """Where there is a second kind, and whenever the kinds have changed since."""
        kinds = [name for name in self._devices if any(node.resources.get(name) for node in self.nodes)]
        if len(kinds) > 1 and kinds != self._kinds:
            log.warning(
                "a server uses one kind of devices, and the cluster has %s: models run on the first; %s",
                " and ".join(f"{name}s" for name in kinds),
                ", ".join(f"accelerator={accelerator_of(name).name} takes the {name}s" for name in kinds[1:]),
            )
        self._kinds = kinds


def _allowed(node: ClusterNode, devices: Sequence[str]) -> ClusterNode:
    """The node without devices of other kinds."""
    others = {*resources_of_devices()} - {*devices}
    resources, free = (
        {name: amount for name, amount in some.items() if name not in others} for some in (node.resources, node.free)
    )
    return msgspec.structs.replace(node, resources=resources, free=free)


def _request(reservation: Reservation) -> Reserve:
    bundles = reservation.bundles
    return Reserve(reservation.id, [dict(one) for one in bundles.resources], bundles.strategy)


def _apply(reservation: Reservation, message: Pending | Reserved | ReservationRefused | Lost) -> None:
    if isinstance(message, Reserved):
        if reservation.places:
            return  # a driver that was started anew tells what it has found
        reservation.places, reservation.waits_for = message.places, ""
        problem = next((place.problem for place in message.places if place.problem), "")
        reservation.lost = problem.rstrip(".")
        reservation.changed()
    elif isinstance(message, Pending):
        reservation.wait(message.reason)
    else:
        reservation.lose(message.reason.rstrip("."))
