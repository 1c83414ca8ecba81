"""How many workers of one model are on a device: `workersPerDevice`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from msx_core.config import ModelConfig, parse_model_config
from msx_frontend.devices.accelerator import DeviceStatus
from msx_frontend.devices.errors import DevicesHeldError
from msx_frontend.devices.pool import DevicePool
from tests.frontend.devices.fake_accelerator import npu_pool

PLAIN = ModelConfig()


def per_device(most: int, **keys: Any) -> ModelConfig:
    return parse_model_config({"workersPerDevice": most, **keys})[0]


TWO = per_device(2)


def given(npus: DevicePool, model: str, config: ModelConfig, count: int) -> list[int]:
    return [npus.lease(model, config).numbers[0] for _ in range(count)]


def read(npus: DevicePool, *percents: int | None, at: float = 10.0) -> None:
    npus.load.read({str(number): DeviceStatus(utilisation=one) for number, one in enumerate(percents)}, at)


def test_workers_spread_over_devices_first_whoever_else_is_there() -> None:
    npus = npu_pool(3)
    for _ in range(2):
        npus.lease("other", ModelConfig(device_ids=(1,)))
    assert sorted(given(npus, "m", TWO, 3)) == [0, 1, 2]
    assert sorted(given(npus, "m", TWO, 3)) == [0, 1, 2]


def test_a_second_worker_goes_where_there_is_time_left() -> None:
    npus = npu_pool(3)
    given(npus, "m", TWO, 3)
    read(npus, 90, 40, 95)
    assert given(npus, "m", TWO, 1) == [1]


def test_no_more_than_so_many_of_one_model() -> None:
    npus = npu_pool(1)
    given(npus, "m", TWO, 2)
    with pytest.raises(DevicesHeldError) as info:
        npus.lease("m", TWO)
    assert str(info.value) == (
        "m needs 1 device with fewer than 2 of its workers (workersPerDevice), and none of 1 device is left for it: 0 "
        "is held by m"
    )
    assert given(npus, "another", TWO, 2) == [0, 0]
    assert given(npus, "m/2.0", PLAIN, 3) == [0, 0, 0], "without the key as many as are asked for, as in TorchServe"


def test_one_on_each_device_beside_those_of_others() -> None:
    npus, one = npu_pool(2), per_device(1)
    npus.lease("other", PLAIN)
    assert sorted(given(npus, "m", one, 2)) == [0, 1]
    with pytest.raises(DevicesHeldError):
        npus.lease("m", one)


def test_a_second_worker_keeps_off_exclusive_devices() -> None:
    npus = npu_pool(2)
    npus.lease("alone", per_device(1, exclusiveDevices=True))
    assert given(npus, "m", TWO, 2) == [1, 1]
    with pytest.raises(DevicesHeldError, match="0 is held by alone, 1 is held by m"):
        npus.lease("m", TWO)


def test_capacity_and_default() -> None:
    npus = npu_pool(4)
    assert (npus.capacity(TWO), npus.capacity(per_device(3, deviceIds=[0, 2]))) == (8, 6)
    assert npus.capacity(per_device(1, exclusiveDevices=True)) == 4
    assert (npus.capacity(PLAIN), npus.capacity(per_device(2, deviceType="cpu"))) == (None, None)
    assert npus.default_workers(TWO) == 4, "one a device, until the load asks for more"


@pytest.mark.parametrize(
    ("workers", "percents", "since", "room"),
    [
        (0, (), 0, None),  # nothing is known: the queue alone decides
        (2, (None, None), 0, None),
        (0, (99, 99), 0, 2),  # the first ones may always be there
        (1, (99, 99), 0, 1),
        (2, (99, 99), 0, 0),
        (2, (99, 79), 0, 1),
        (2, (10, 10), 0, 2),
        (2, (10, 10), 10, 0),  # read before all of them worked
        (3, (10, 10), 0, 2),  # one at a time on each device
        (2, (99, None), 0, 2),
        (6, (10, 10), 0, None),  # full: what lacks is said by the lease
    ],
)
def test_room_for_more(workers: int, percents: Sequence[int | None], since: float, room: int | None) -> None:
    npus, three = npu_pool(2), per_device(3)
    given(npus, "m", three, workers)
    read(npus, *percents)
    assert npus.room("m", three, since) == room


def test_room_is_on_devices_that_the_model_may_have_now() -> None:
    npus = npu_pool(3)
    npus.lease("alone", ModelConfig(exclusive_devices=True))
    npus.health.unhealthy[1] = "Critical"
    read(npus, 10, 10, 10)
    assert npus.room("m", TWO, 0) == 1
    assert npus.room("m", PLAIN, 0) is None
    assert npus.room("m", per_device(2, deviceType="cpu"), 0) is None


def test_only_another_worker_of_the_same_model_is_told() -> None:
    told: list[str] = []
    npus = npu_pool(1, shared=lambda lease, others: told.append(f"{lease.model_key} with {len(others)}"))
    npus.lease("other", PLAIN)
    npus.lease("m", TWO)
    assert told == []
    npus.lease("m", TWO)
    assert told == ["m with 2"]
