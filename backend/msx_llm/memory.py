"""The bytes of a rank for keys and values, if model-config.yaml does not set them (`cacheMemory`)."""

from typing import Any

from msx_core.cgroup import memory_limit
from msx_core.config import ModelConfig
from msx_llm.kernels.devices import engine_device
from msx_sdk.errors import HandlerLoadError
from msx_sdk.mindspore.parallel import Parallel

HOST_FRACTION, DEVICE_FRACTION = 0.25, 0.8
"""The rest of the memory is for activations, buffers of collectives, and fragmentation."""
MIB = 1 << 20


def stated_budget(config: ModelConfig, target: str) -> int | None:
    """The budget that is known before the weights are read: from the yaml, or where all ranks share it a
    part of the memory of the machine or its cgroup. None if the device must be asked afterwards."""
    if config.cache_memory is not None:
        return config.cache_memory * MIB
    if not engine_device(target).shares_memory:
        return None
    return int(memory_limit() * (config.cache_fraction or HOST_FRACTION)) // config.layout.ranks


def measured_budget(config: ModelConfig, parallel: Parallel, weights: int) -> int:
    """The part `cacheFraction` of what the device has free beside weights of this many bytes. All ranks use the
    smallest budget of any rank, so that they hold the same texts. Raises HandlerLoadError."""
    import mindspore as ms

    from msx_sdk.mindspore import collectives

    free = ms.Tensor([free_memory(ms, parallel.target, weights) // MIB], ms.int32)
    least = collectives.all_reduce(free, parallel.world_group, "min")
    return int(int(least.asnumpy()[0]) * MIB * (config.cache_fraction or DEVICE_FRACTION))


def free_memory(ms: Any, target: str, weights: int) -> int:
    """Free bytes of this process's device. Weights that were read but not moved there yet count as used; memory that
    MindSpore has reserved without using it counts as free. Raises HandlerLoadError."""
    properties = ms.hal.get_device_properties(0, target)  # the number is ignored: it is this process's device
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
