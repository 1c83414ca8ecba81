"""The driver's work between the server and a Ray that is made up."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest

pytest.importorskip("ray")

from ray.exceptions import RayError

from msx_protocol import FrameReader
from msx_ray.driver import driver as module
from msx_ray.driver.connection import RayConnection
from msx_ray.driver.driver import Driver
from msx_ray.messages import (
    ClusterNode,
    FromDriver,
    Lost,
    Nodes,
    Pending,
    Place,
    Remove,
    Removed,
    ReservationRefused,
    Reserve,
    Reserved,
    StartAgents,
)

PLACE = Place(0, "id-a", "node-a", "192.0.2.1")


class FakeGroup:
    """`raising` names the calls that fail."""

    raising: set[str] = set()

    def __init__(self, id: str, bundles: list[dict[str, float]], strategy: str) -> None:
        self._fail("make")
        self.id, self.bundles, self.pending = id, bundles, ""
        self.places: list[Place] = []
        self.inhabited = False
        self.room, self.removed, self.gone = False, False, ""
        self.invitation: dict[str, Any] = {}

    def _fail(self, call: str) -> None:
        if call in self.raising:
            raise RayError(f"{call} failed\nby {call}")

    def granted(self) -> bool:
        self._fail("granted")
        new = self.room and not self.places
        self.places = [PLACE] if self.room else []
        return new

    def waits(self) -> bool:
        return not self.places

    def start(self, invitation: dict[str, Any]) -> None:
        self._fail("start")
        self.invitation, self.inhabited = invitation, True

    def check_agents(self) -> None:
        self._fail("check_agents")

    def lost(self) -> str:
        return self.gone

    def remove(self) -> None:
        self.removed = True


class Site:
    """A driver whose messages the test reads."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.nodes: list[dict[str, Any]] = []
        monkeypatch.setattr(module, "Group", FakeGroup)
        monkeypatch.setattr(FakeGroup, "raising", set())
        monkeypatch.setattr(module, "_free", lambda: {"id-a": {"CPU": 1.5, "node:192.0.2.1": 1.0}})
        monkeypatch.setattr(module, "ray", SimpleNamespace(nodes=lambda: self.nodes))
        self._server, driver_end = socket.socketpair()
        self.driver = Driver(driver_end, cast(RayConnection, None), "me")
        self.orphans: list[str] = []
        self.orphans_closed = 0
        orphans: Any = SimpleNamespace(look=lambda now: self.orphans, close=self._close_orphans)
        self.driver._orphans = orphans

    def _close_orphans(self) -> None:
        self.orphans_closed += 1

    def asks(self, *messages: Any) -> list[FromDriver]:
        """All that the server is told of them, after a look at the cluster."""
        for message in messages:
            self.driver._do(message)
        self.driver._look()
        reader: FrameReader[FromDriver] = FrameReader(FromDriver)
        told = []
        self._server.setblocking(False)
        try:
            while True:
                count = self._server.recv_into(reader.space())
                told += [message for message, _ in reader.received(count)]
        except BlockingIOError:
            return told

    def group(self, id: str = "r") -> FakeGroup:
        return cast(FakeGroup, self.driver._groups[id])

    def close(self) -> None:
        self._server.close()
        self.driver._end.close()


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    made = Site(monkeypatch)
    yield made
    made.close()


RESERVE = Reserve("r", [{"NPU": 2.0}, {"CPU": 1.0}], "PACK")


def test_a_reservation_waits_is_granted_and_given_back(site: Site) -> None:
    missing = Pending("r", "the cluster has no room now for 2 NPU + 1 CPU")
    assert site.asks(RESERVE) == [missing]
    assert site.driver._busy
    assert site.asks(RESERVE) == [], "asked again by a server that was not sure: nothing new"
    group = site.group()
    group.room = True
    assert site.asks() == [Reserved("r", [PLACE])]
    assert not site.driver._busy
    site.asks(StartAgents("r", ["192.0.2.9"], 7, "key", "pin"))
    assert group.invitation == {"addresses": ["192.0.2.9"], "port": 7, "key": "key", "fingerprint": "pin"}
    assert site.asks(Remove("r")) == [Removed("r")]
    assert group.removed
    assert site.asks(Remove("r")) == [Removed("r")], "whoever asks again is answered"
    assert site.asks(StartAgents("r", [], 7, "key", "pin")) == []


@pytest.mark.parametrize("call", ["make", "start"])
def test_what_ray_refuses_is_told(site: Site, call: str) -> None:
    FakeGroup.raising = {call}
    told = site.asks(RESERVE, StartAgents("r", [], 7, "key", "pin"))
    assert ReservationRefused("r", f"{call} failed\nby {call}") in told


@pytest.mark.parametrize("call", ["granted", "check_agents"])
def test_what_fails_later_loses_the_place(site: Site, call: str) -> None:
    site.asks(RESERVE)
    group, FakeGroup.raising = site.group(), {call}
    assert site.asks() == [Lost("r", f"by {call}")]
    assert group.removed
    assert site.asks() == []


def test_a_holder_that_is_gone_loses_the_place(site: Site) -> None:
    site.asks(RESERVE)
    group = site.group()
    group.room, group.gone = True, "node-a"
    assert site.asks() == [Reserved("r", [PLACE]), Lost("r", "node node-a or its holder is gone")]
    assert group.removed


def test_nodes_are_told_when_they_have_changed(site: Site) -> None:
    resources = {"CPU": 4.0, "NPU": 2.0, "memory": 1e9, "CPU_group_0": 1.0}
    node = {"NodeID": "id-a", "NodeManagerHostname": "node-a", "NodeManagerAddress": "192.0.2.1", "Alive": True}
    site.nodes = [{**node, "Resources": resources}]
    told = ClusterNode("id-a", "node-a", "192.0.2.1", True, {"CPU": 4.0, "NPU": 2.0}, {"CPU": 1.5})
    assert site.asks() == [Nodes([told])]
    assert site.asks() == []


def test_a_server_that_is_gone_leaves_what_has_agents_to_its_holders(site: Site) -> None:
    site.asks(RESERVE, Reserve("other", [{"CPU": 1.0}], "PACK"))
    waits, runs = site.group(), site.group("other")
    runs.inhabited = True
    site.driver._withdraw()
    assert (waits.removed, runs.removed) == (True, False)
    assert site.orphans_closed == 1
