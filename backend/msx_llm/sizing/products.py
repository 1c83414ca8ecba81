"""The product that a plan is made for."""

from typing import NamedTuple

from msx_core.cgroup import memory_limit
from msx_llm.kernels.device import DevicePeaks, EngineDevice
from msx_llm.kernels.devices import DEVICES, engine_device
from msx_sdk.errors import HandlerLoadError

CPU = "cpu"


class Product(NamedTuple):
    device: EngineDevice
    peaks: DevicePeaks


def product_of(name: str) -> Product:
    """Raises HandlerLoadError, which names the known ones."""
    if name.lower() == CPU:
        return Product(engine_device("CPU"), DevicePeaks(memory_limit()))
    for device in DEVICES:
        short = name.lower().removeprefix(device.target.lower())
        found = next((peaks for known, peaks in device.peaks.items() if known.lower() == short), None)
        if found is not None:
            return Product(device, found)
    known = ", ".join((*(name for device in DEVICES for name in device.peaks), CPU))
    raise HandlerLoadError(f"--npu: {name!r} is not known; known are {known}")
