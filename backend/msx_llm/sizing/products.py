"""The product that a plan is made for."""

from typing import NamedTuple

from msx_core.cgroup import memory_limit
from msx_llm.kernels.device import DevicePeaks, EngineDevice
from msx_llm.kernels.devices import DEVICES, engine_device
from msx_sdk.errors import HandlerLoadError

CPU = "cpu"


class Product(NamedTuple):
    name: str
    device: EngineDevice
    peaks: DevicePeaks


def product_of(name: str) -> Product:
    """Raises HandlerLoadError, which names the known ones."""
    if name.lower() == CPU:
        return Product(CPU, engine_device("CPU"), DevicePeaks(memory_limit()))
    for device in DEVICES:
        short = name.lower().removeprefix(device.target.lower())
        known = next((known for known in device.peaks if known.lower() == short), None)
        if known is not None:
            return Product(known, device, device.peaks[known])
    all_known = ", ".join((*(name for device in DEVICES for name in device.peaks), CPU))
    raise HandlerLoadError(f"--npu: {name!r} is not known; known are {all_known}")
