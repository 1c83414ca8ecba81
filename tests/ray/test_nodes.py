"""Where the ranks of a group are among those of their node."""

from __future__ import annotations

from msx_frontend.devices.ascend import VISIBLE
from msx_frontend.devices.choose import visible_variables
from msx_frontend.devices.nodes import GroupPlacement
from msx_ray.messages import Place
from msx_ray.placements import placement_of
from msx_ray.reservation import Bundles, Reservation


def placed(ranks: tuple[int, ...], *places: tuple[str, tuple[str, ...]]) -> GroupPlacement:
    bundles = Bundles(tuple({"NPU": float(count)} for count in ranks), ranks)
    reservation = Reservation("r", bundles, lambda reservation: None)
    reservation.places = [Place(i, f"id-{n}", n, "10.0.0.1", devices) for i, (n, devices) in enumerate(places)]
    return placement_of(reservation)


def test_neighbouring_ranks_are_on_one_node() -> None:
    """Also where Ray takes the nodes in turns; the shares stay in the order of the bundles."""
    placement = placed((1,) * 4, ("a", ("0",)), ("b", ("4",)), ("a", ("1",)), ("b", ("3",)))
    assert [share.ranks for share in placement.shares] == [(0,), (2,), (1,), (3,)]
    assert placement.nodes == ["a", "b"]
    assert placement.in_words() == "ranks 0, 1 on a (devices 0,1); ranks 2, 3 on b (devices 3,4)"


def test_each_rank_sees_the_devices_of_its_group_on_its_node() -> None:
    placement = placed((1,) * 3, ("a", ("10",)), ("a", ("2",)), ("b", ("0",)))
    assert placement.place_of(0) == (0, 2, ("2", "10"))
    assert [placement.place_of(rank).device_id for rank in range(3)] == [0, 1, 0]
    assert placement.place_of(2) == (0, 1, ("0",))
    shown = [placement.environment_of(rank) for rank in range(3)]
    assert shown == [{VISIBLE: "2,10"}, {VISIBLE: "2,10"}, {VISIBLE: "0"}]


def test_two_nodes_on_one_host_are_two() -> None:
    bundles = Bundles(({"CPU": 1.0}, {"CPU": 1.0}), (1, 1), "STRICT_SPREAD")
    reservation = Reservation("r", bundles, lambda reservation: None)
    reservation.places = [Place(index, f"id-{index}", "host", "127.0.0.1") for index in range(2)]
    placement = placement_of(reservation)
    assert [placement.place_of(rank) for rank in range(2)] == [(0, 1, ()), (0, 1, ())]
    assert placement.place_of(0).device_id is None
    assert placement.environment_of(0) == dict.fromkeys(visible_variables(), "")
    assert placement.in_words() == "ranks 0, 1 on host"
