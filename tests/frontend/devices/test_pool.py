from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msx_core.config import ModelConfig, parse_model_config
from msx_frontend.devices import hccl_ports
from msx_frontend.devices.ascend import VISIBLE
from msx_frontend.devices.errors import DevicesHeldError, TooFewDevicesError, UnknownDeviceError
from msx_frontend.devices.lease import Lease
from msx_frontend.devices.pool import DevicePool
from tests.frontend.devices.fake_accelerator import npu_pool

PLAIN = ModelConfig()


def pool(count: int, first: int = 0, **options: Any) -> DevicePool:
    return npu_pool(count, first, **options)


def config(**keys: Any) -> ModelConfig:
    return parse_model_config(keys)[0]


def group(size: int, ids: Sequence[int] | None = None, **keys: Any) -> ModelConfig:
    """One whose device ids are given by a list, or by nothing."""
    listed = {} if ids is None else {"deviceIds": list(ids)}
    return config(parallelType="custom", parallelLevel=size, **listed, **keys)


def devices(npus: DevicePool, model: str, *configs: ModelConfig) -> list[tuple[int, ...]]:
    return [npus.lease(model, one).numbers for one in configs]


# -- the order --


def test_sharing_goes_round_from_device_0_over_all_models() -> None:
    npus = pool(3)
    visible = [npus.lease(model, PLAIN).device_ids for model in ("a", "a", "b", "b", "a")]
    assert visible == ["0", "1", "2", "0", "1"]


def test_sharing_over_device_ids_has_a_counter_per_model() -> None:
    npus, listed = pool(4), config(deviceIds=[3, 1])
    assert [npus.lease("a", listed).numbers[0] for _ in range(3)] == [3, 1, 3]
    assert npus.lease("b", listed).numbers[0] == 1, "fewer are on it"
    assert npus.lease("c", PLAIN).numbers[0] == 0


def test_a_worker_goes_to_a_free_device_then_to_the_one_that_the_fewest_share() -> None:
    npus = pool(3)
    first, second, third = (npus.lease("a", PLAIN) for _ in range(3))
    npus.release(second)
    npus.lease("b", PLAIN)
    assert npus.holders(1) == ["b"]
    npus.release(third)
    npus.release(first)
    assert devices(npus, "c", *[PLAIN] * 3) == [(2,), (0,), (1,)]


def test_no_device_for_the_cpu_or_on_a_machine_without() -> None:
    for lease in (pool(2).lease("a", config(deviceType="cpu")), pool(0).lease("a", config(deviceIds=[5]))):
        assert (lease.numbers, lease.device_ids, lease.environment) == ((), None, {VISIBLE: ""}), "it sees none"
    on_cpu = pool(0).lease("a", config(parallelType="tp", parallelLevel=2, exclusiveDevices=True))
    assert (on_cpu.device_ids, on_cpu.numbers) == (None, ())


def test_groups_take_slices_in_turn() -> None:
    npus, two = pool(6), group(2)
    leases = [npus.lease("a", two) for _ in range(3)]
    assert [lease.device_ids for lease in leases] == ["0,1", "2,3", "4,5"]
    npus.release(leases[0])
    npus.release(leases[1])
    assert npus.lease("a", two).device_ids == "0,1"
    npus.release(leases[2])
    assert npus.lease("a", two).device_ids == "2,3"


def test_device_numbers_are_mapped_and_ascend() -> None:
    npus = pool(4, first=4)
    lease = npus.lease("a", config(deviceIds=[3, 0], parallelType="pp", parallelLevel=2))
    assert (lease.numbers, lease.device_ids) == ((0, 3), "4,7")


def test_a_group_finds_what_is_free_between_the_slices() -> None:
    npus = pool(4)
    devices(npus, "x", group(1, [1]), group(1, [2]))
    assert npus.lease("big", group(2)).numbers == (0, 3)


# -- which leases share a device --


def test_workers_keep_off_the_devices_of_groups_while_others_are_as_empty() -> None:
    npus = pool(4)
    npus.lease("big", group(2, [1, 2]))
    assert devices(npus, "a", *[PLAIN] * 4) == [(0,), (3,), (0,), (3,)]
    assert devices(npus, "a", *[PLAIN] * 2) == [(1,), (2,)], "then these have the fewest"


def test_a_group_prefers_free_devices_to_those_of_workers() -> None:
    npus = pool(4)
    npus.lease("a", PLAIN)
    assert devices(npus, "big", group(2), group(2)) == [(2, 3), (0, 1)]


def test_groups_and_workers_that_share_are_told() -> None:
    told: list[tuple[str, list[str]]] = []
    npus = pool(2, shared=lambda lease, others: told.append((lease.model_key, [one.model_key for one in others])))
    devices(npus, "a", *[PLAIN] * 3)
    assert told == [], "workers of one process always share"
    npus.lease("big", group(2))
    npus.lease("b", PLAIN)
    assert told == [("big", ["a", "a", "a"]), ("b", ["a", "big"])]


def test_unhealthy_devices_are_not_given() -> None:
    npus = pool(4)
    npus.health.unhealthy |= {0: "Critical", 2: "Alarm"}
    assert devices(npus, "a", *[PLAIN] * 3) == [(1,), (3,), (1,)]
    assert (npus.default_workers(PLAIN), npus.default_workers(group(2))) == (2, 1)
    assert npus.unhealthy(config(deviceIds=[2, 3])) == {2: "Alarm"}
    assert npus.unhealthy(config(deviceType="cpu")) == {}


def test_a_refusal_names_what_is_held_and_what_is_unhealthy() -> None:
    npus = pool(4)
    npus.health.unhealthy |= {0: "Critical", 2: "Critical"}
    npus.lease("a", group(1, [1]))
    with pytest.raises(DevicesHeldError) as info:
        npus.lease("big", group(2))
    assert str(info.value) == (
        "big needs 2 devices that no other group has, and 1 of 4 devices is left for it: 1 is held by a, 0 and 2 are "
        "unhealthy (Critical); groups share devices where the configs of both say shareDevices: true"
    )
    with pytest.raises(DevicesHeldError) as info:
        npus.lease("b", group(1, [0]))
    assert str(info.value) == (
        "b needs 1 device that no other group has, and none of 1 device is left for it: 0 is unhealthy (Critical)"
    )


def test_two_groups_share_only_where_both_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hccl_ports, "_can_listen", lambda port: True)  # tests that run beside this one listen, too
    npus, sharing = pool(2), group(2, shareDevices=True)
    first = npus.lease("a", sharing)
    with pytest.raises(DevicesHeldError, match="0 and 1 are held by a; groups share devices where the configs of both"):
        npus.lease("b", group(2))
    second = npus.lease("c", sharing)
    assert (first.numbers, second.numbers) == ((0, 1), (0, 1))
    assert (first.port_block, second.port_block) == (0, 1)
    npus.release(first)
    assert npus.lease("d", sharing).port_block == 0
    assert pool(2).lease("a", PLAIN).port_block is None, "it has no collectives"


@pytest.mark.parametrize("way", ["of the server", "of the model"])
def test_an_exclusive_group_shares_with_no_worker(way: str) -> None:
    npus = pool(2, exclusive_groups=way == "of the server")
    alone = group(2) if way == "of the server" else group(2, exclusiveDevices=True)
    worker = npus.lease("a", PLAIN)
    with pytest.raises(DevicesHeldError) as info:
        npus.lease("big", alone)
    assert str(info.value) == "big needs 2 devices of its own, and 1 of 2 devices is left for it: 0 is held by a"
    npus.release(worker)
    npus.lease("big", alone)
    with pytest.raises(DevicesHeldError) as info:
        npus.lease("a", PLAIN)
    assert str(info.value) == "a needs 1 device, and none of 2 devices is left for it: 0 and 1 are held by big"


def test_a_worker_of_one_process_may_have_a_device_of_its_own() -> None:
    npus, alone = pool(2), config(exclusiveDevices=True)
    assert devices(npus, "a", alone, PLAIN) == [(0,), (1,)]
    assert npus.lease("b", PLAIN).numbers == (1,)
    with pytest.raises(DevicesHeldError, match="c needs 1 device of its own"):
        npus.lease("c", alone)
    assert (npus.capacity(alone), npus.capacity(PLAIN)) == (2, None)


# -- how many --


def test_the_default_number_of_workers_is_that_of_the_devices_which_groups_leave() -> None:
    npus = pool(8)
    assert (npus.default_workers(PLAIN), npus.default_workers(group(3))) == (8, 2)
    devices(npus, "a", group(2), group(3))
    assert npus.default_workers(PLAIN) == 3
    assert npus.default_workers(group(2)) == 1
    assert npus.default_workers(config(deviceIds=[0, 1, 6])) == 1
    assert npus.default_workers(config(deviceType="cpu")) == 1
    devices(npus, "b", group(3))
    assert npus.default_workers(PLAIN) == 1, "at least one"


def test_capacity() -> None:
    assert pool(7).capacity(group(2)) == 3
    assert pool(7).capacity(group(2, [0, 1, 2, 3])) == 2
    assert pool(7).capacity(group(2, shareDevices=True)) is None
    assert pool(7, exclusive_groups=True).capacity(group(2, shareDevices=True)) == 3
    assert pool(0).capacity(group(2)) is None


# -- refusals --


def test_too_few_names_the_holders() -> None:
    npus = pool(8)
    npus.lease("llama/1.0", group(2))
    npus.lease("echo/1.0", PLAIN)
    npus.lease("tail/1.0", group(5, [3, 4, 5, 6, 7]))
    with pytest.raises(DevicesHeldError) as info:
        npus.lease("big/2.0", group(3))
    assert str(info.value) == (
        "big/2.0 needs 3 devices that no other group has, and 1 of 8 devices is left for it: 0 and 1 are held by "
        "llama/1.0, 3, 4, 5, 6 and 7 are held by tail/1.0; groups share devices where the configs of both say "
        "shareDevices: true"
    )
    npus.lease("more/1.0", config(deviceIds=[2]))
    with pytest.raises(DevicesHeldError, match=r"none of 8 .*llama/1\.0, 2 is held by echo/1\.0 and more/1\.0, 3, 4, "):
        npus.lease("alone/1.0", group(2, exclusiveDevices=True))


def test_more_than_there_are() -> None:
    with pytest.raises(TooFewDevicesError, match=r"^huge needs 8 devices, and this server has 4$"):
        pool(4).lease("huge", group(8))
    with pytest.raises(TooFewDevicesError, match=r"has 4: lower parallelLevel, and vllm\.tensor_parallel_size or"):
        pool(4).lease("huge", group(8, vllm={}))
    pool(0).check("huge", group(8))


def test_a_device_that_is_not_there() -> None:
    with pytest.raises(UnknownDeviceError) as info:
        pool(2).lease("a", config(deviceIds=[0, 2]))
    assert str(info.value) == "deviceIds: [0, 2] names device 2, and this server has devices 0 to 1"
    with pytest.raises(UnknownDeviceError, match="this server has device 0 only"):
        pool(1).lease("a", group(2, [0, 1]))


def test_releasing_twice_frees_once() -> None:
    npus = pool(1)
    first = npus.lease("a", group(1))
    npus.release(first)
    second = npus.lease("b", group(1))
    npus.release(first)
    assert npus.holders(0) == ["b"]
    npus.release(second)
    assert npus.holders(0) == []


def test_a_forgotten_model_starts_anew() -> None:
    npus, listed = pool(4), config(deviceIds=[3, 1])
    npus.release(npus.lease("a", listed))
    npus.forget("a")
    assert npus.lease("a", listed).numbers[0] == 3


# -- whatever happens --

KINDS = ["worker", "lone worker", "group", "sharing group", "lone group", "release"]
Step = tuple[str, int, int, bool]
STEPS = st.lists(st.tuples(st.sampled_from(KINDS), st.integers(0, 7), st.integers(1, 5), st.booleans()))


def config_of(kind: str, number: int, size: int, listed: bool, count: int) -> ModelConfig | None:
    """None for a group that its list is too short for."""
    ids = list(dict.fromkeys(n % count for n in (number, number + 2, number + 3)))
    keys: dict[str, Any] = {"deviceIds": ids} if listed else {}
    if kind.startswith("lone"):
        keys["exclusiveDevices"] = True
    if kind == "sharing group":
        keys["shareDevices"] = True
    if kind.endswith("group"):
        keys |= {"parallelType": "custom", "parallelLevel": size}
        if size > (len(ids) if listed else count):
            return None
    return config(**keys)


def act(npus: DevicePool, step: Step, leases: list[Lease]) -> None:
    kind, number, size, listed = step
    if kind == "release":
        if leases:
            npus.release(leases.pop(number % len(leases)))
        return
    wanted = config_of(kind, number, size, listed, npus.count)
    if wanted is None:
        return
    candidates = wanted.device_ids or range(npus.count)
    try:
        leases.append(npus.lease(f"m{number % 3}", wanted))
        assert set(leases[-1].numbers) <= set(candidates)
        assert len(leases[-1].devices) == (wanted.layout.devices or 1)
    except DevicesHeldError:
        free = [device for device in candidates if not npus.holders(device)]
        assert len(free) < (wanted.layout.devices or 1), "a free device can be leased"


@given(st.integers(1, 8), STEPS)
def test_no_lease_is_beside_one_that_it_must_not_share_with_and_no_device_is_lost(
    count: int, steps: list[Step]
) -> None:
    npus, leases = pool(count), list[Lease]()
    for step in steps:
        act(npus, step, leases)
        for device in range(count):
            on = [lease for lease in leases if device in lease.numbers]
            assert all(a.terms.may_share_with(b.terms) for a in on for b in on if a is not b)
            assert sorted(npus.holders(device)) == sorted(lease.model_key for lease in on)
        blocks = [lease.port_block for lease in leases if lease.terms.shares]
        assert len(blocks) == len(set(blocks))
    for lease in leases:
        npus.release(lease)
    assert npus.lease("all", group(count, exclusiveDevices=True)).numbers == tuple(range(count))
