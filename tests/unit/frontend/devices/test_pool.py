from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msx_frontend.devices.npus import Npu
from msx_frontend.devices.pool import DevicePool, Lease, NoDevicesError, UnknownDeviceError
from msx_sdk.config import ModelConfig, parse_model_config

PLAIN = ModelConfig()


def pool(count: int, first: int = 0) -> DevicePool:
    return DevicePool([Npu(i, "simulated") for i in range(first, first + count)])


def config(**keys: Any) -> ModelConfig:
    return parse_model_config(keys)[0]


def test_sharing_goes_round_from_device_0_over_all_models() -> None:
    npus = pool(3)
    visible = [npus.lease_shared(model, PLAIN).visible_devices for model in ("a", "a", "b", "b", "a")]
    assert visible == ["0", "1", "2", "0", "1"]


def test_sharing_over_device_ids_has_a_counter_per_model() -> None:
    npus, listed = pool(4), config(deviceIds=[3, 1])
    assert [npus.lease_shared("a", listed).device_id for _ in range(3)] == [3, 1, 3]
    assert npus.lease_shared("b", listed).device_id == 3
    assert npus.lease_shared("c", PLAIN).device_id == 0


def test_no_device_for_the_cpu_or_on_a_machine_without() -> None:
    for lease in (pool(2).lease("a", config(deviceType="cpu")), pool(0).lease("a", config(deviceIds=[5]))):
        assert (lease.devices, lease.visible_devices, lease.device_id) == ((), None, None)
    group = pool(0).lease("a", config(parallelType="tp", parallelLevel=2))
    assert (group.visible_devices, group.exclusive) == (None, True)


def test_groups_take_slices_in_turn() -> None:
    npus = pool(6)
    leases = [npus.lease_group("a", 2, None) for _ in range(3)]
    assert [lease.visible_devices for lease in leases] == ["0,1", "2,3", "4,5"]
    npus.release(leases[0])
    npus.release(leases[1])
    assert npus.lease_group("a", 2, None).visible_devices == "0,1"
    npus.release(leases[2])
    assert npus.lease_group("a", 2, None).visible_devices == "2,3"


def test_device_numbers_are_mapped_and_ascend() -> None:
    npus = pool(4, first=4)
    lease = npus.lease("a", config(deviceIds=[3, 0], parallelType="pp", parallelLevel=2))
    assert (lease.devices, lease.visible_devices) == ((0, 3), "4,7")


def test_sharers_keep_off_the_devices_of_groups() -> None:
    npus = pool(4)
    npus.lease_group("big", 2, [1, 2])
    assert [npus.lease_shared("a", PLAIN).device_id for _ in range(3)] == [0, 3, 0]


def test_a_group_finds_what_is_free_between_the_slices() -> None:
    npus = pool(4)
    npus.lease_group("x", 1, [1])
    npus.lease_group("y", 1, [2])
    assert npus.lease_group("big", 2, None).devices == (0, 3)


def test_too_few_names_the_holders() -> None:
    npus = pool(4)
    npus.lease_group("llama/1.0", 2, None)
    npus.lease_shared("echo/1.0", PLAIN)
    with pytest.raises(NoDevicesError) as info:
        npus.lease_group("big/2.0", 3, None)
    assert str(info.value) == (
        "big/2.0 needs 3 devices of its own, and 1 of 4 devices is free: "
        "0 is held by llama/1.0, 1 is held by llama/1.0, 2 is held by echo/1.0"
    )
    with pytest.raises(
        NoDevicesError, match=r"^x needs a device, and 0 of 1 device are free: 0 is held by llama/1\.0$"
    ):
        npus.lease_shared("x", config(deviceIds=[0]))
    with pytest.raises(NoDevicesError, match=r"^huge needs 8 devices of its own, and 1 of 4 devices is free: "):
        npus.lease_group("huge", 8, None)
    with pytest.raises(NoDevicesError, match=r"^huge needs 2 devices of its own, and 1 of 1 device is free$"):
        pool(1).lease_group("huge", 2, None)


def test_a_device_that_is_not_there() -> None:
    with pytest.raises(UnknownDeviceError) as info:
        pool(2).lease_shared("a", config(deviceIds=[0, 2]))
    assert str(info.value) == "deviceIds: [0, 2] names device 2, and this server has devices 0 to 1"
    with pytest.raises(UnknownDeviceError, match="this server has device 0 only"):
        pool(1).lease_group("a", 2, [0, 1])


def test_releasing_twice_frees_once() -> None:
    npus = pool(1)
    first = npus.lease_group("a", 1, None)
    npus.release(first)
    second = npus.lease_group("b", 1, None)
    npus.release(first)
    assert npus.holders(0) == ["b"]
    npus.release(second)
    assert npus.holders(0) == []


def test_a_forgotten_model_starts_anew() -> None:
    npus, listed = pool(4), config(deviceIds=[3, 1])
    npus.lease_shared("a", listed)
    npus.forget("a")
    assert npus.lease_shared("a", listed).device_id == 3


Step = tuple[str, int, int]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["shared", "listed", "group", "listed group", "release"]), st.integers(0, 7), st.integers(1, 5)
    )
)


def act(npus: DevicePool, step: Step, leases: list[Lease]) -> None:
    kind, number, size = step
    model = f"m{number % 3}"
    if kind == "release":
        if leases:
            npus.release(leases.pop(number % len(leases)))
        return
    count = len(npus.npus)
    listed: Sequence[int] | None = list(dict.fromkeys(n % count for n in (number, number + 2, number + 3)))
    try:
        if kind == "group":
            leases.append(npus.lease_group(model, size, None))
        elif kind == "listed group":
            leases.append(npus.lease_group(model, size, listed))
        else:
            leases.append(npus.lease_shared(model, config(deviceIds=listed) if kind == "listed" else PLAIN))
    except NoDevicesError:
        pass


@given(st.integers(1, 8), STEPS)
def test_no_device_is_in_two_groups_and_none_is_lost(count: int, steps: list[Step]) -> None:
    npus, leases = pool(count), list[Lease]()
    for step in steps:
        act(npus, step, leases)
        owned = [device for lease in leases if lease.exclusive for device in lease.devices]
        shared = {device for lease in leases if not lease.exclusive for device in lease.devices}
        assert len(owned) == len(set(owned))
        assert not shared & set(owned)
        used = {device for device in range(count) if npus.holders(device)}
        assert used == shared | set(owned)
    for lease in leases:
        npus.release(lease)
    assert npus.lease_group("all", count, None).devices == tuple(range(count))


@given(st.integers(1, 8), STEPS, st.integers(1, 8))
def test_a_group_fails_only_when_too_few_are_free(count: int, steps: list[Step], size: int) -> None:
    npus, leases = pool(count), list[Lease]()
    for step in steps:
        act(npus, step, leases)
    free = sum(not npus.holders(device) for device in range(count))
    if free >= size:
        assert len(npus.lease_group("new", size, None).devices) == size
    else:
        with pytest.raises(NoDevicesError):
            npus.lease_group("new", size, None)
