"""An `Accelerator`: a kind of device, and which kinds this server knows."""

from msx_core.framework_device import FrameworkDevice
from msx_frontend.devices.accelerator import Accelerator, Device, DeviceStatus, Links, NoMorePortsError
from msx_frontend.devices.choose import accelerator_of, resources_of_devices
from msx_frontend.findings import Finding

__all__ = [
    "Accelerator",
    "Device",
    "DeviceStatus",
    "Finding",
    "FrameworkDevice",
    "Links",
    "NoMorePortsError",
    "accelerator_of",
    "resources_of_devices",
]
