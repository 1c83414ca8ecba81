"""Reservations in a Ray that is made up."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("ray")

from ray.exceptions import RayError

from msx_ray.driver import groups
from msx_ray.driver.groups import Group, kept_groups
from tests.ray.fake_ray import PLACED, FakeRay

TWO = [{"CPU": 1.0}, {"CPU": 1.0}]
INVITATION: dict[str, Any] = {"addresses": ["192.0.2.9"], "port": 7, "key": "k", "fingerprint": "f"}


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeRay:
    return FakeRay(monkeypatch, groups)


def placed(fake: FakeRay, id: str = "msx-me-1") -> Group:
    """All its holders have said where they are."""
    group = Group(id, TWO, "STRICT_SPREAD")
    fake.states[id] = "CREATED"
    assert not group.granted(), "its holders are being started"
    for number, holder in enumerate(fake.holders.values()):
        holder.refs["place"].resolve({**PLACED, "node": f"node-{number}"})
    assert group.granted()
    return group


def test_it_is_granted_when_all_holders_have_said_where_they_are(fake: FakeRay) -> None:
    group = Group("msx-me-1", TWO, "STRICT_SPREAD")
    assert fake.asked == [("msx-me-1", "STRICT_SPREAD")]
    assert not group.granted()
    assert fake.holders == {}, "Ray has not created it yet"
    fake.states["msx-me-1"] = "CREATED"
    assert not group.granted()
    assert list(fake.holders) == ["msx-me-1:0", "msx-me-1:1"]
    fake.holders["msx-me-1:1"].refs["place"].resolve(PLACED)
    assert not group.granted()
    fake.holders["msx-me-1:0"].refs["place"].resolve({**PLACED, "node": "node-b", "devices": []})
    assert group.granted()
    assert [(one.bundle, one.node, one.devices) for one in group.places] == [(0, "node-b", ()), (1, "node-a", ("0",))]
    assert not group.granted(), "it is told once"


@pytest.mark.parametrize(
    ("bundle", "options"),
    [
        ({"CPU": 1.0}, {"num_cpus": 1.0, "num_gpus": 0, "resources": {}}),
        ({"NPU": 2.0}, {"num_cpus": 0, "num_gpus": 0, "resources": {"NPU": 2.0}}),
        ({"GPU": 2.0}, {"num_cpus": 0, "num_gpus": 2.0, "resources": {}}),
    ],
)
def test_a_holder_takes_each_resource_as_ray_has_it(
    fake: FakeRay, bundle: dict[str, float], options: dict[str, Any]
) -> None:
    """Ray refuses "GPU" among other resources."""
    group = Group("msx-me-1", [bundle], "PACK")
    fake.states["msx-me-1"] = "CREATED"
    group.granted()
    (given,) = fake.options
    assert {name: given[name] for name in options} == options


def test_it_waits_after_a_moment_only(fake: FakeRay, monkeypatch: pytest.MonkeyPatch) -> None:
    group = Group("msx-me-1", TWO, "PACK")
    assert not group.waits()
    monkeypatch.setattr(groups, "MOMENT", -1.0)
    assert group.waits()
    fake.states["msx-me-1"] = "CREATED"
    group.granted()
    assert not group.waits(), "its holders are being started"


def test_agents_are_invited_by_their_share(fake: FakeRay) -> None:
    group = placed(fake)
    assert not group.inhabited
    group.check_agents()
    group.start(INVITATION)
    assert group.inhabited
    assert [holder.invited for holder in fake.holders.values()] == [
        [{**INVITATION, "share": number, "devices": ("0",), "node": f"node-{number}", "resource": "CPU"}]
        for number in range(2)
    ]
    group.check_agents()
    fake.holders["msx-me-1:0"].refs["start"].resolve(None)
    group.check_agents()
    fake.holders["msx-me-1:1"].refs["start"].resolve(RayError("the agent could not be started"))
    with pytest.raises(RayError, match="the agent could not be started"):
        group.check_agents()


def test_a_holder_that_ends_is_told_by_its_node(fake: FakeRay) -> None:
    assert Group("msx-me-0", TWO, "PACK").lost() == ""
    group = placed(fake)
    assert group.lost() == ""
    fake.holders["msx-me-1:1"].refs["hold"].resolve(RayError("it died"))
    assert group.lost() == "node-1"


def test_a_holder_that_fails_before_it_has_a_place(fake: FakeRay) -> None:
    group = Group("msx-me-1", TWO, "PACK")
    fake.states["msx-me-1"] = "CREATED"
    group.granted()
    for holder in fake.holders.values():
        holder.refs["place"].resolve(RayError("no msx-serve"))
    with pytest.raises(RayError, match="no msx-serve"):
        group.granted()


def test_it_is_removed_with_its_holders(fake: FakeRay) -> None:
    group = placed(fake)
    group.remove()
    assert all(holder.killed for holder in fake.holders.values())
    assert fake.removed == ["msx-me-1"]


def test_a_driver_that_was_started_again_finds_what_there_is(fake: FakeRay) -> None:
    placed(fake)
    placed(fake, "msx-other-1")
    del fake.holders["msx-other-1:1"]
    (group,) = kept_groups("me").values()
    assert group.id == "msx-me-1"
    assert group.inhabited
    assert group.granted(), "it is told anew where it is"
    assert len(fake.asked) == 2, "no other placement group was made"


@pytest.mark.parametrize("missing", ["holder", "group"])
def test_what_is_not_whole_is_not_kept(fake: FakeRay, missing: str) -> None:
    placed(fake)
    if missing == "holder":
        del fake.holders["msx-me-1:1"]
    else:
        del fake.states["msx-me-1"]
    assert kept_groups("me") == {}
