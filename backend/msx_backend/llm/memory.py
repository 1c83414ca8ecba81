"""How many bytes of a rank keys and values may take, where model-config.yaml does not say it (`cacheMemory`)."""

from __future__ import annotations

from typing import Any

from msx_sdk._internal.cgroup import memory_limit
from msx_sdk._internal.config import ModelConfig
from msx_sdk.errors import HandlerLoadError
from msx_sdk.mindspore.parallel import Parallel

HOST_FRACTION, DEVICE_FRACTION = 0.25, 0.8
"""The rest of a device is for activations, for what collectives buffer, and for gaps between them."""
MIB = 1 << 20


def stated_budget(config: ModelConfig, target: str) -> int | None:
    """What is known before the weights are read: by the yaml, or on a CPU a part of the memory of the machine or of
    its cgroup, which all ranks share. None where the device has to be asked, after that."""
    if config.cache_memory is not None:
        return config.cache_memory * MIB
    if target != "CPU":
        return None
    return int(memory_limit() * (config.cache_fraction or HOST_FRACTION)) // config.layout.ranks


def measured_budget(config: ModelConfig, parallel: Parallel, weights: int) -> int:
    """Of what the device has free beside weights of so many bytes, the part that `cacheFraction` says; on all ranks
    what the one with the least has, so that they divide the same texts. Raises HandlerLoadError."""
    import mindspore as ms

    from msx_sdk.mindspore import collectives

    free = ms.Tensor([free_memory(ms, weights) // MIB], ms.int32)
    least = collectives.all_reduce(free, parallel.world_group, "min")
    return int(int(least.asnumpy()[0]) * MIB * (config.cache_fraction or DEVICE_FRACTION))


def free_memory(ms: Any, weights: int) -> int:
    """Free bytes of this process's NPU. Weights that were read and have not been moved there yet count as
    if they were; what MindSpore has taken from the device without using it is free. Raises HandlerLoadError."""
    properties = ms.hal.get_device_properties(0, "Ascend")  # the number is ignored: it is this process's device
    if properties is None or not properties.total_memory:
        raise HandlerLoadError(
            "the device does not say how much memory it has; give cacheMemory in model-config.yaml, in MiB for a rank"
        )
    free: int = properties.free_memory + ms.runtime.memory_reserved() - max(ms.runtime.memory_allocated(), weights)
    if free <= 0:
        raise HandlerLoadError(
            f"the device has no memory left for keys and values: of {properties.total_memory // MIB} MiB, "
            f"{properties.free_memory // MIB} are free, and the weights of this rank take {weights // MIB}; divide the "
            "model over more ranks (parallelType), or keep other processes off the device"
        )
    return free
