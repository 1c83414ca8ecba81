"""The rules of devices are the same for all kinds: names and variables differ, and nothing else."""

from __future__ import annotations

import pytest

from msx_core.config import ModelConfig
from msx_frontend.devices.accelerator import Accelerator, Device
from msx_frontend.devices.choose import KNOWN
from msx_frontend.devices.errors import DevicesHeldError
from msx_frontend.devices.lease import Lease
from msx_frontend.devices.nodes import GroupPlacement, Share
from msx_frontend.devices.pool import DevicePool
from tests.frontend.devices.test_pool import PLAIN, config, group

NAMES = {"npu": ["0", "1", "2", "3"], "gpu": ["GPU-b1", "GPU-a2", "GPU-d3", "GPU-c4"]}
"""As the drivers have them, in the server's order."""

pytestmark = pytest.mark.parametrize("kind", KNOWN, ids=lambda kind: kind.kind)

Kind = type[Accelerator]


def pool(kind: Kind) -> DevicePool:
    return DevicePool(kind(env={}), [Device(name, kind.title) for name in NAMES[kind.kind]])


def shown(kind: Kind, lease: Lease) -> list[int]:
    """The server's numbers of the devices that a process sees, in the order in which it sees them."""
    assert lease.environment[kind.visible] == lease.device_ids
    return [NAMES[kind.kind].index(name) for name in lease.environment[kind.visible].split(",")]


def test_workers_in_turn(kind: Kind) -> None:
    devices = pool(kind)
    assert [shown(kind, devices.lease("a", PLAIN)) for _ in range(5)] == [[0], [1], [2], [3], [0]]
    listed = config(deviceIds=[3, 1])
    assert [shown(kind, devices.lease("b", listed)) for _ in range(3)] == [[3], [1], [3]]


@pytest.mark.parametrize(("said", "has"), [("npu", True), ("gpu", True), ("cpu", False)])
def test_both_names_mean_the_devices_that_there_are(kind: Kind, said: str, has: bool) -> None:
    devices, model = pool(kind), config(deviceType=said)
    assert devices.kind(model) == (kind.kind if has else "cpu")
    assert bool(devices.lease("a", model).devices) is has


def test_groups(kind: Kind) -> None:
    devices, two = pool(kind), group(2)
    first, second = devices.lease("a", two), devices.lease("a", group(2, [3, 2]))
    assert (shown(kind, first), shown(kind, second)) == ([0, 1], [2, 3])
    with pytest.raises(DevicesHeldError, match="0, 1, 2 and 3 are held by a"):
        devices.lease("b", two)
    devices.release(first)
    alone: ModelConfig = group(2, exclusiveDevices=True)
    assert shown(kind, devices.lease("b", alone)) == [0, 1]
    with pytest.raises(DevicesHeldError, match="c needs 1 device"):
        devices.lease("c", config(deviceIds=[1]))


def test_on_a_node_of_a_cluster(kind: Kind) -> None:
    """Each rank sees the devices of all shares of its group there, in one order."""
    names = NAMES[kind.kind]
    shares = [Share("a", "10.0.0.1", (rank,), (names[rank],), "id-a") for rank in (1, 0)]
    placement = GroupPlacement("r", tuple(shares), kind.resource)
    seen = {placement.environment_of(rank)[kind.visible] for rank in (0, 1)}
    assert seen == {",".join(sorted(names[:2]))}
