"""Devices of which a process sees one only (MIG instances): workers of one process have them, groups do not."""

from __future__ import annotations

from pathlib import Path

import pytest

from msx_core.config import ModelConfig
from msx_frontend.devices.accelerator import Device
from msx_frontend.devices.errors import LoneDeviceError
from msx_frontend.devices.pool import DevicePool
from msx_frontend.management_errors import ResourcesMissing
from tests.frontend.devices.fake_accelerator import FakeAccelerator
from tests.frontend.devices.test_pool import PLAIN, config, group
from tests.frontend.harness import Harness, in_harness

WHOLE, PART = Device("GPU-0", "A100"), Device("MIG-0", "A100 MIG 1g.10gb", alone=True)


def pool_of(*devices: Device) -> DevicePool:
    return DevicePool(FakeAccelerator(), devices)


def test_workers_of_one_process_go_round() -> None:
    parts = pool_of(PART, PART)
    assert [parts.lease("a", PLAIN).numbers for _ in range(3)] == [(0,), (1,), (0,)]
    assert parts.lease("b", config(exclusiveDevices=False, deviceIds=[1])).numbers == (1,)
    assert parts.default_workers(PLAIN) == 2


def test_a_group_of_one_is_one_process_too() -> None:
    assert pool_of(PART).lease("a", group(1)).numbers == (0,)


@pytest.mark.parametrize("keys", [{"parallelType": "tp"}, {"parallelType": "custom", "deviceIds": [1, 0]}])
def test_a_group_is_refused_by_name(keys: dict[str, object]) -> None:
    parts, two = pool_of(WHOLE, PART), config(parallelLevel=2, **keys)
    for refused in (parts.check, parts.lease):
        with pytest.raises(LoneDeviceError) as info:
            refused("big:1.0", two)
        assert str(info.value) == (
            f"big:1.0 needs 2 devices that each of its processes sees (parallelType: {keys['parallelType']}), and a "
            "process sees device 1 (MIG-0) alone only: leave out parallelType for one device a worker, or give this "
            "server whole devices"
        )


def test_a_group_gets_whole_devices() -> None:
    mixed, two = pool_of(PART, WHOLE, PART, WHOLE), group(2)
    assert (mixed.capacity(two), mixed.default_workers(two)) == (1, 1)
    assert mixed.lease("big", two).numbers == (1, 3)
    mixed.health.unhealthy[0] = "Lost"
    assert (mixed.unhealthy(two), mixed.unhealthy(PLAIN)) == ({}, {0: "Lost"})
    on_cpu: ModelConfig = config(parallelType="tp", parallelLevel=3, deviceType="cpu")
    mixed.check("cpu", on_cpu)


def test_registering_and_scaling_say_so(tmp_path: Path) -> None:
    fake = FakeAccelerator(2)
    fake.devices = [PART, PART]

    async def test(harness: Harness) -> None:
        two = "parallelType: custom\nparallelLevel: 2\n"
        with pytest.raises(ResourcesMissing, match=r"m:1\.0 needs 2 devices .*device 0 \(MIG-0\) alone only"):
            await harness.register("m", config=two)
        await harness.register("n", config=two, initial_workers=0)
        with pytest.raises(ResourcesMissing, match=r"n:1\.0 needs 2 devices .*device 0 \(MIG-0\) alone only"):
            await harness.management.scale("n", None, 1, 1, wait=True)

    in_harness(tmp_path, test, accelerator=fake)
