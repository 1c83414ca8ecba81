"""Memory for keys and values: by the yaml, by the machine, or by what a device has left."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from msx_core.config import ConfigError, ModelConfig, parse_model_config
from msx_llm import memory
from msx_llm.memory import MIB, cache_memory, measured_budget, stated_budget
from msx_sdk.errors import HandlerLoadError

GIB = 1 << 30
TP2: dict[str, Any] = {"parallelType": "tp", "msrun": {"nproc-per-node": 2}}


def config(**keys: Any) -> ModelConfig:
    return parse_model_config(keys)[0]


def device(*, total: int = 64 * GIB, free: int, reserved: int = 0, allocated: int = 0) -> Any:
    """MindSpore on a device in such a state."""
    properties = SimpleNamespace(total_memory=total, free_memory=free)
    return SimpleNamespace(
        hal=SimpleNamespace(get_device_properties=lambda number, target: properties if target == "Ascend" else None),
        runtime=SimpleNamespace(memory_reserved=lambda: reserved, memory_allocated=lambda: allocated),
    )


@pytest.mark.parametrize("target", ["CPU", "Ascend"])
def test_the_yaml_says_it(target: str) -> None:
    assert stated_budget(config(cacheMemory=64), target) == 64 * MIB


def test_ranks_on_a_cpu_share_a_part_of_what_the_cgroup_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    total = 6 * GIB
    monkeypatch.setattr(memory, "memory_limit", lambda: total)
    assert stated_budget(config(), "CPU") == total // 4
    assert stated_budget(config(**TP2), "CPU") == total // 4 // 2
    assert stated_budget(config(cacheFraction=0.5), "CPU") == total // 2


def test_a_device_has_to_be_asked() -> None:
    """However much the host has: 64 GiB of a device are not a part of that."""
    assert stated_budget(config(), "Ascend") is None
    assert stated_budget(config(cacheFraction=0.5), "Ascend") is None


@pytest.mark.parametrize(
    ("state", "used", "expected"),
    [
        ({"free": 63 * GIB}, 14 * GIB, 64 * GIB * 9 // 10 - 14 * GIB),  # read, but not on the device yet
        ({"free": 49 * GIB, "reserved": 14 * GIB, "allocated": 14 * GIB}, 16 * GIB, 64 * GIB * 9 // 10 - 16 * GIB),
        ({"free": 30 * GIB, "reserved": 16 * GIB, "allocated": 15 * GIB}, 14 * GIB, 31 * GIB),  # others have the rest
        ({"free": 20 * GIB, "reserved": 2 * GIB}, 14 * GIB, 8 * GIB),
    ],
)
def test_what_a_device_has_beside_weights_and_a_step(state: dict[str, int], used: int, expected: int) -> None:
    """Nine tenths of all its memory, as far as they are free."""
    assert cache_memory(device(**state), "Ascend", used, 0.9) == expected


@pytest.mark.parametrize(("free", "fraction"), [(8, 0.9), (63, 0.2)])
def test_a_device_that_is_full(free: int, fraction: float) -> None:
    with pytest.raises(HandlerLoadError) as caught:
        cache_memory(device(free=free * GIB), "Ascend", 14 * GIB, fraction)
    assert str(caught.value) == (
        f"the device has no memory left for keys and values: of 65536 MiB, {free * 1024} are free, this model may have "
        f"the part cacheFraction: {fraction}, and weights and the largest step take 14336 MiB on this rank; divide the "
        "model over more ranks (parallelType), give a larger cacheFraction, or keep other processes off the device"
    )


@pytest.mark.parametrize("properties", [None, SimpleNamespace(total_memory=0, free_memory=0)])
def test_a_device_that_says_nothing(properties: Any) -> None:
    silent = SimpleNamespace(hal=SimpleNamespace(get_device_properties=lambda number, target: properties))
    with pytest.raises(HandlerLoadError, match="the device does not say how much memory it has; give cacheMemory"):
        cache_memory(silent, "Ascend", 0, 0.9)


@pytest.mark.mindspore
@pytest.mark.parametrize(("keys", "expected"), [({}, 0.9), ({"cacheFraction": 0.5}, 0.5)])
def test_the_fraction_of_all_memory(monkeypatch: pytest.MonkeyPatch, keys: dict[str, Any], expected: float) -> None:
    pytest.importorskip("mindspore")
    from msx_sdk.mindspore import collectives
    from msx_sdk.mindspore.parallel import Parallel

    collectives.register("world", (0,))
    monkeypatch.setattr("msx_llm.memory.cache_memory", lambda ms, target, used, part: int(50 * GIB * part) - used)
    assert measured_budget(config(**keys), Parallel(target="Ascend"), 10 * GIB) == int(50 * GIB * expected) - 10 * GIB


@pytest.mark.mindspore
def test_all_ranks_have_what_the_fullest_has(monkeypatch: pytest.MonkeyPatch) -> None:
    ms = pytest.importorskip("mindspore")
    from msx_sdk.mindspore import collectives
    from msx_sdk.mindspore.parallel import Parallel

    def others(tensor: Any, group: str, op: str) -> Any:
        assert (group, op) == ("world", "min")
        return ms.ops.minimum(tensor, ms.Tensor([30 * 1024], ms.int32))

    monkeypatch.setattr(collectives, "all_reduce", others)
    monkeypatch.setattr("msx_llm.memory.cache_memory", lambda ms, target, used, part: 50 * GIB)
    assert measured_budget(config(**TP2), Parallel(target="Ascend", tp_size=2), 0) == 30 * GIB


def test_both_keys_are_one_too_many() -> None:
    with pytest.raises(ConfigError, match=r"cacheMemory: 64 and cacheFraction: 0\.5 both say how much memory"):
        config(cacheMemory=64, cacheFraction=0.5)


@pytest.mark.parametrize("value", [0, 1.5, "half"])
def test_a_fraction_is_above_0_and_at_most_1(value: object) -> None:
    with pytest.raises(ConfigError, match=r"cacheFraction: .* is not a number above 0, and at most 1"):
        config(cacheFraction=value)
