"""The ranks of a group get devices that lie close together."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msx_core.config import ModelConfig
from msx_frontend.devices.accelerator import Device, Links
from msx_frontend.devices.ascend import Ascend
from msx_frontend.devices.npu_smi_topo import LINKS, parse_topo
from msx_frontend.devices.pool import DevicePool
from msx_frontend.devices.topology import MOST_DEVICES, Topology
from tests.frontend.devices.test_ascend import DATA, install_sample
from tests.frontend.devices.test_pool import PLAIN, group

MACHINES = ("910a", "910b", "910b_pcie", "910c")


def ascend_of(machine: str, folder: Path) -> Ascend:
    install_sample(folder, machine)
    return Ascend(None, {"PATH": f"{folder}:/usr/bin:/bin"})


def pool_of(machine: str, folder: Path) -> DevicePool:
    ascend = ascend_of(machine, folder)
    devices = ascend.detect()
    return DevicePool(ascend, devices, ascend.links())


def test_links_of_the_chips(tmp_path: Path) -> None:
    ascend = ascend_of("910c", tmp_path)
    ascend.detect()
    links = ascend.links()
    assert (links["2", "3"], links["3", "4"], len(links)) == (LINKS["SIO"], LINKS["HCCS_SW"], 8 * 7)


def test_chips_that_the_tool_names_by_their_card(tmp_path: Path) -> None:
    ascend = ascend_of("310p", tmp_path)
    ascend.detect()
    assert ascend.links() == {("0", "1"): LINKS["PIX"], ("1", "0"): LINKS["PIX"]}


def test_a_machine_whose_tool_does_not_know(tmp_path: Path) -> None:
    ascend = ascend_of("310p", tmp_path)
    assert ascend.links() == {}, "before anything was detected"
    simulated = Ascend(4, {"PATH": "/nowhere"})
    assert len(simulated.simulated(4)) == 4
    assert simulated.links() == {}


@pytest.mark.parametrize(
    ("machine", "held", "size", "given"),
    [
        ("910a", [1], 2, (2, 3)),  # a free slice
        ("910a", [1, 6], 2, (2, 3)),
        ("910a", [1, 2, 4, 7], 2, (0, 3)),  # a ring, though no slice is free
        ("910a", [3], 4, (4, 5, 6, 7)),
        ("910a", [3, 4], 4, (0, 1, 2, 5)),  # no ring has four: three of one
        ("910b_pcie", [1, 3], 2, (4, 5)),
        ("910b_pcie", [1, 3, 5, 7], 2, (0, 2)),  # one CPU, not two
        ("910c", [0, 3], 2, (4, 5)),
        ("910c", [0, 3, 5, 6], 3, (1, 2, 4)),
        ("910b", [1, 2, 4, 7], 2, (0, 3)),  # all alike: the first ones
    ],
)
def test_neighbours(machine: str, held: list[int], size: int, given: tuple[int, ...], tmp_path: Path) -> None:
    pool = pool_of(machine, tmp_path)
    for device in held:
        pool.lease("held", group(1, [device]))
    assert pool.lease("m", group(size)).numbers == given


def test_few_holders_come_before_short_links(tmp_path: Path) -> None:
    pool = pool_of("910a", tmp_path)
    for device in (1, 2, 3):
        pool.lease("held", group(1, [device]))
    for _ in range(3):
        pool.lease("one", PLAIN)  # 0, 4 and 5
    assert pool.lease("m", group(2)).numbers == (6, 7)
    assert pool.lease("m", group(2)).numbers == (4, 5)


def test_workers_of_one_process_go_round_as_without_a_topology(tmp_path: Path) -> None:
    pool = pool_of("910a", tmp_path)
    assert [pool.lease("m", PLAIN).numbers[0] for _ in range(9)] == [0, 1, 2, 3, 4, 5, 6, 7, 0]


def groups(pool: DevicePool, config: ModelConfig, count: int) -> list[tuple[int, ...]]:
    return [pool.lease("m", config).numbers for _ in range(count)]


def test_on_a_free_machine_the_slices_are_those_of_torchserve(tmp_path: Path) -> None:
    for machine in MACHINES:
        assert groups(pool_of(machine, tmp_path), group(2), 4) == [(0, 1), (2, 3), (4, 5), (6, 7)]
        assert groups(pool_of(machine, tmp_path), group(4), 2) == [(0, 1, 2, 3), (4, 5, 6, 7)]


def links_of(depths: list[int]) -> Links:
    """Devices on the leaves of a tree: the earlier two part, the more their link costs."""
    ids = range(len(depths) + 1)
    return {(str(a), str(b)): max(depths[min(a, b) : max(a, b)]) for a in ids for b in ids if a != b}


@given(st.lists(st.integers(1, 4), min_size=1, max_size=8), st.data())
def test_the_slowest_link_is_as_fast_as_it_can_be(depths: list[int], data: st.DataObject) -> None:
    devices = [Device(str(number), "") for number in range(len(depths) + 1)]
    topology = Topology(devices, links_of(depths))
    free = data.draw(st.lists(st.sampled_from(range(len(devices))), min_size=1, unique=True))
    size = data.draw(st.integers(1, len(free)))
    best = min(map(topology.spread, combinations(free, size)))
    assert topology.spread(topology.closest([], free, size))[0] == best[0]


@pytest.mark.parametrize("machine", MACHINES)
def test_on_each_machine_no_set_is_better(machine: str) -> None:
    """Whatever is free, and however many are wanted."""
    rows = parse_topo((DATA / f"{machine}_topo.txt").read_text())
    links = {(str(a.number), str(b.number)): cost for a, row in rows.items() for b, cost in row.links.items()}
    topology = Topology([Device(str(number), "") for number in range(8)], links)
    for free in (free for count in range(1, 9) for free in combinations(range(8), count)):
        for size in range(1, len(free) + 1):
            best = min(map(topology.spread, combinations(free, size)))
            assert topology.spread(topology.closest([], free, size)) == best, (free, size)


def test_a_machine_of_too_many_devices_has_no_known_topology() -> None:
    depths = [1] * MOST_DEVICES
    devices = [Device(str(number), "") for number in range(MOST_DEVICES + 1)]
    assert not Topology(devices, links_of(depths)).known
    assert Topology(devices[:-1], links_of(depths[:-1])).known
