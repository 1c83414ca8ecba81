"""Reservations of servers that are gone, in a cluster that is made up."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("ray")

from msx_ray.driver import orphans
from msx_ray.driver.orphans import EVERY, GONE, Orphans


class FakeRay:
    """Placement groups by name, the names of holders, and the store."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.groups: dict[str, str] = {}
        self.holders: list[str] = []
        self.store: dict[bytes, bytes] = {}
        self.taken: set[str] = set()
        """Removed by others, right before it is asked for."""
        for name in ("placement_group_table", "get_placement_group", "remove_placement_group"):
            monkeypatch.setattr(orphans, name, getattr(self, name))
        monkeypatch.setattr("ray.util.list_named_actors", self.actors)
        monkeypatch.setattr(orphans, "_internal_kv_put", lambda key, value, namespace: self.store.update({key: value}))
        monkeypatch.setattr(orphans, "_internal_kv_get", lambda key, namespace: self.store.get(key))
        monkeypatch.setattr(orphans, "_internal_kv_del", lambda key, namespace: self.store.pop(key))

    def placement_group_table(self) -> dict[str, Any]:
        return {str(id): {"name": name, "state": state} for id, (name, state) in enumerate(self.groups.items())}

    def get_placement_group(self, name: str) -> str:
        if name in self.taken:
            raise ValueError(name)
        return name

    def remove_placement_group(self, name: str) -> None:
        self.groups[name] = "REMOVED"

    def actors(self, all_namespaces: bool) -> list[dict[str, str]]:
        return [{"name": name} for name in self.holders]


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeRay:
    return FakeRay(monkeypatch)


def looked(one: Orphans, start: float, seconds: float) -> list[str]:
    """All that was removed within these seconds."""
    return [name for step in range(int(seconds / EVERY) + 2) for name in one.look(start + step * EVERY)]


def test_what_a_dead_server_has_left_is_removed(fake: FakeRay) -> None:
    fake.groups = {"msx-dead-1": "PENDING", "msx-dead-2": "REMOVED", "msx-mine-1": "PENDING", "somebodys": "CREATED"}
    fake.store[b"beat-dead"] = b"7"
    one = Orphans("mine")
    assert looked(one, 0.0, GONE - EVERY) == []
    assert looked(one, GONE, EVERY) == ["msx-dead-1"]
    assert fake.groups["msx-mine-1"] == "PENDING"
    assert fake.groups["somebodys"] == "CREATED"


def test_a_server_whose_driver_is_away_keeps_its_places(fake: FakeRay) -> None:
    """Each count begins the time anew."""
    fake.groups = {"msx-other-1": "PENDING"}
    one, other = Orphans("mine"), Orphans("other")
    for start in (0.0, GONE * 0.9, GONE * 1.8):
        other.look(start)
        assert looked(one, start, GONE * 0.8) == []


def test_what_has_a_holder_ends_with_its_agent(fake: FakeRay) -> None:
    fake.groups, fake.holders = {"msx-dead-1": "CREATED"}, ["msx-dead-1:0"]
    assert looked(Orphans("mine"), 0.0, 3 * GONE) == []


def test_a_server_that_ends_leaves_no_count(fake: FakeRay) -> None:
    one = Orphans("mine")
    one.look(0.0)
    assert list(fake.store) == [b"beat-mine"]
    one.close()
    assert not fake.store


def test_a_driver_that_was_started_again_counts_anew(fake: FakeRay) -> None:
    """Its first count is not the one that its predecessor began with, long ago."""
    one = Orphans("mine")
    fake.groups = {"msx-other-1": "PENDING"}
    Orphans("other").look(0.0)
    assert one.look(0.0) == []
    fake.holders = ["msx-other-1:0"]
    assert one.look(GONE) == []
    fake.groups["msx-other-2"] = "PENDING"
    Orphans("other").look(2 * GONE)
    assert one.look(2 * GONE) == []
    Orphans("other").look(3.1 * GONE)
    assert one.look(3.2 * GONE) == []


def test_two_that_look_at_once(fake: FakeRay) -> None:
    fake.groups, fake.taken = {"msx-dead-1": "PENDING", "msx-dead-2": "PENDING"}, {"msx-dead-1"}
    assert looked(Orphans("mine"), 0.0, GONE + EVERY) == ["msx-dead-2"]
