"""The devices that the engine runs on: the one list."""

from msx_llm.kernels.ascend.device import AscendDevice
from msx_llm.kernels.cpu.device import CpuDevice
from msx_llm.kernels.device import EngineDevice
from msx_sdk.errors import HandlerLoadError

DEVICES: tuple[EngineDevice, ...] = (CpuDevice(), AscendDevice())


def engine_device(target: str) -> EngineDevice:
    """The device that MindSpore calls so. Raises HandlerLoadError for one without kernels."""
    for device in DEVICES:
        if device.target == target:
            return device
    known = " and ".join(device.target for device in DEVICES)
    raise HandlerLoadError(f"the language engine has no kernels for {target} devices; it has them for {known}")
