"""The bytes of a rank for keys and values, if model-config.yaml does not set them (`cacheMemory`)."""

from typing import Any

from msx_core.cgroup import memory_limit
from msx_core.config import ModelConfig
from msx_llm.kernels.devices import engine_device
from msx_sdk.errors import HandlerLoadError
from msx_sdk.mindspore.parallel import Parallel

HOST_FRACTION, DEVICE_FRACTION = 0.25, 0.9
"""Parts of all memory. The rest of a device's is for graphs, buffers of collectives, and fragmentation."""
MIB = 1 << 20


def stated_budget(config: ModelConfig, target: str) -> int | None:
    """The budget that is known before the weights are read: from the yaml, or where all ranks share it a
    part of the memory of the machine or its cgroup. None if the device must be asked afterwards."""
    if config.cache_memory is not None:
        return config.cache_memory * MIB
    if not engine_device(target).shares_memory:
        return None
    return int(memory_limit() * (config.cache_fraction or HOST_FRACTION)) // config.layout.ranks


def measured_budget(config: ModelConfig, parallel: Parallel, used: int) -> int:
    """The part `cacheFraction` of the device's memory less `used` bytes, those of weights and the largest step; never
    more than is free. All ranks use the smallest budget of any rank, so that they hold the same texts. Raises
    HandlerLoadError."""
    import mindspore as ms

    from msx_sdk.mindspore import collectives

    own = cache_memory(ms, parallel.target, used, config.cache_fraction or DEVICE_FRACTION)
    least = collectives.all_reduce(ms.Tensor([own // MIB], ms.int32), parallel.world_group, "min")
    return int(least.asnumpy()[0]) * MIB


def cache_memory(ms: Any, target: str, used: int, fraction: float) -> int:
    """Bytes for keys and values on this process's device. Of the `used` ones some may not be there yet; memory that
    MindSpore has reserved without using it counts as free. Raises HandlerLoadError."""
    properties = ms.hal.get_device_properties(0, target)  # the number is ignored: it is this process's device
    if properties is None or not properties.total_memory:
        raise HandlerLoadError(
            "the device does not say how much memory it has; give cacheMemory in model-config.yaml, in MiB for a rank"
        )
    free: int = properties.free_memory + ms.runtime.memory_reserved() - max(ms.runtime.memory_allocated(), used)
    own = min(int(properties.total_memory * fraction) - used, free)
    if own < MIB:
        raise HandlerLoadError(
            f"the device has no memory left for keys and values: of {properties.total_memory // MIB} MiB, "
            f"{properties.free_memory // MIB} are free, this model may have the part cacheFraction: {fraction}, and "
            f"weights and the largest step take {used // MIB} MiB on this rank; divide the model over more "
            "ranks (parallelType), give a larger cacheFraction, or keep other processes off the device"
        )
    return own
