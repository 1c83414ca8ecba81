"""Does what the server asks for, and tells it what has changed in the cluster."""

import contextlib
import os
import queue
import socket
import threading
import time
from typing import Any

import ray
from ray.exceptions import RayError

from msx_frontend.plugins.accelerators import resources_of_devices
from msx_protocol import FrameReader, encode_frame
from msx_ray.driver.connection import NotConnectedError, RayConnection
from msx_ray.driver.groups import Group, kept_groups
from msx_ray.driver.orphans import Orphans
from msx_ray.driver_process import ANEW
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
    ToDriver,
    Unreachable,
)
from msx_ray.reservation import CPU

BUSY, IDLE = 0.1, 0.5
"""Seconds between two looks at the cluster: while something is being placed, and else."""

LAST = 8.0
"""Seconds that it has to withdraw what waits, when the server is gone."""

SLOW = 15.0
"""Seconds after which it says that connecting takes long: Ray waits for a minute and more."""

AGAIN = 5.0
"""Seconds before it tries to connect again."""


class Driver:
    """One thread reads the server's messages, one watches the head; everything that calls Ray is in the main thread."""

    def __init__(self, end: socket.socket, connection: RayConnection, server: str) -> None:
        self._end = end
        self._connection = connection
        self._server = server
        self._asked: queue.SimpleQueue[ToDriver | None] = queue.SimpleQueue()
        self._groups: dict[str, Group] = {}
        self._nodes: list[ClusterNode] = []
        self._telling = threading.Lock()
        self._connected = False
        self._orphans = Orphans(server)

    def run(self) -> int:
        """Returns the exit code when the server has closed its end. `_watch` ends the process too."""
        threading.Thread(target=self._read, daemon=True).start()
        self._connect()
        threading.Thread(target=self._watch, daemon=True).start()
        while True:
            try:
                message = self._asked.get(timeout=BUSY if self._busy else IDLE)
                if message is None:
                    self._withdraw()
                    return 0
                self._do(message)
            except queue.Empty:
                pass
            self._look()

    @property
    def _busy(self) -> bool:
        return any(not group.places for group in self._groups.values())

    def _withdraw(self) -> None:
        """The server is gone: what has no agents is given back. The holders of the others do it, with their agents."""
        for group in self._groups.values():
            if not group.inhabited:
                group.remove()
        self._orphans.close()

    def _connect(self) -> None:
        while True:
            late = threading.Timer(SLOW, self._tell, [Unreachable(self._connection.slow(SLOW))])
            late.start()
            try:
                version = self._connection.open()
            except NotConnectedError as error:
                late.cancel()
                late.join()
                self._tell(Unreachable(str(error)))
                time.sleep(AGAIN)
                continue
            late.cancel()
            late.join()  # what it says must not come after the next line's
            self._connected = True
            self._groups = kept_groups(self._server)
            self._tell(Connected(self._connection.gcs, version, list(self._groups)))
            return

    def _watch(self) -> None:
        """Calls of Ray wait for a head that is gone, and end the process after a minute."""
        while not (problem := self._connection.problem()):
            time.sleep(IDLE)
        self._tell(Unreachable(problem))
        self._connection.wait_until_back()
        os._exit(ANEW)

    def _read(self) -> None:
        reader: FrameReader[ToDriver] = FrameReader(ToDriver)
        while count := self._end.recv_into(reader.space()):
            for message, _ in reader.received(count):
                self._asked.put(message)
        if not self._connected:
            os._exit(0)  # nothing was asked for yet
        self._asked.put(None)
        time.sleep(LAST)
        os._exit(1)  # a call of Ray does not return

    def _tell(self, message: FromDriver) -> None:
        with self._telling, contextlib.suppress(OSError):  # the reader sees that the server is gone
            self._end.sendall(encode_frame(message))

    def _do(self, message: ToDriver) -> None:
        try:
            if isinstance(message, Reserve):
                if message.id not in self._groups:
                    self._groups[message.id] = Group(message.id, message.bundles, message.strategy)
            elif isinstance(message, StartAgents):
                if (group := self._groups.get(message.id)) is not None:
                    group.start(_invitation(message))
            elif isinstance(message, Remove):
                if (group := self._groups.pop(message.id, None)) is not None:
                    group.remove()
                self._tell(Removed(message.id))
        except (RayError, ValueError) as error:
            self._tell(ReservationRefused(message.id, str(error)))

    def _look(self) -> None:
        self._look_at_nodes()
        with contextlib.suppress(RayError):  # looked at again
            for name in self._orphans.look(time.monotonic()):
                self._tell(OrphanRemoved(name))
        for group in list(self._groups.values()):
            try:
                self._look_at(group)
            except RayError as error:
                self._lost(group, _first_line(error))

    def _look_at(self, group: Group) -> None:
        if group.granted():
            self._tell(Reserved(group.id, group.places))
        elif group.waits() and (missing := self._missing(group)) != group.pending:
            group.pending = missing
            self._tell(Pending(group.id, missing))
        group.check_agents()
        if node := group.lost():
            self._lost(group, f"node {node} or its holder is gone")

    def _lost(self, group: Group, reason: str) -> None:
        del self._groups[group.id]
        group.remove()
        self._tell(Lost(group.id, reason))

    def _missing(self, group: Group) -> str:
        wanted = " + ".join(_in_words(bundle) for bundle in group.bundles)
        return f"the cluster has no room now for {wanted}"

    def _look_at_nodes(self) -> None:
        free = _free()
        nodes = [
            ClusterNode(
                id=one["NodeID"],
                name=one["NodeManagerHostname"],
                address=one["NodeManagerAddress"],
                alive=one["Alive"],
                resources=_whole(one["Resources"]),
                free=_whole(free.get(one["NodeID"], {})),
            )
            for one in ray.nodes()
        ]
        if nodes != self._nodes:
            self._nodes = nodes
            self._tell(Nodes(nodes))


def _invitation(message: StartAgents) -> dict[str, Any]:
    names = ("addresses", "port", "key", "fingerprint")
    return {name: getattr(message, name) for name in names}


def _free() -> dict[str, dict[str, float]]:
    """Free resources by node; empty over Ray's client server, which does not tell."""
    if ray.util.client.ray.is_connected():
        return {}
    known: dict[str, dict[str, float]] = ray._private.state.available_resources_per_node()
    return known


def _whole(resources: dict[str, float]) -> dict[str, float]:
    """Resources that people request, without Ray's own of nodes, placement groups and memory."""
    return {name: resources[name] for name in sorted(resources) if name in (CPU, *resources_of_devices())}


def _in_words(bundle: dict[str, float]) -> str:
    return ", ".join(f"{amount:g} {name}" for name, amount in bundle.items())


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[-1][:500]
