"""The state of devices in replies: typed members, and TorchServe's text `gpuUsage`."""

from collections.abc import Sequence
from typing import Any

from msx_frontend.devices.accelerator import Device, DeviceStatus
from msx_frontend.devices.local_cores import core_list
from msx_frontend.resources.device_reading import MB
from msx_frontend.resources.worker_device import WorkerDevice

NO_USAGE = "N/A"
"""TorchServe's, of a worker without a GPU."""
NO_FIGURE = "[N/A]"
"""As nvidia-smi prints a figure that a device does not have."""


def gpu_usage(devices: Sequence[WorkerDevice]) -> str:
    """Output of nvidia-smi as TorchServe puts it together (WorkerThread.getGpuUsage), for each device that was read."""
    return ", ".join(_text(one.number, one.status) for one in devices if one.status is not None) or NO_USAGE


def _text(number: int, status: DeviceStatus) -> str:
    figures = {
        "utilization.gpu [%]": (status.utilisation, "%"),
        "utilization.memory [%]": (status.memory_activity, "%"),
        "memory.used [MiB]": (status.memory_used, "MiB"),
    }
    told = (f"{name}::{NO_FIGURE if value is None else f'{value} {unit}'}" for name, (value, unit) in figures.items())
    return f"gpuId::{number} {' '.join(told)}"


def worker_devices(devices: Sequence[WorkerDevice]) -> list[dict[str, Any]]:
    """`workers[].deviceUsage` of the describe API."""
    return [_known(**_of_device(one.number, one.device, one.status), workerMemory=one.memory) for one in devices]


def server_device(number: int, device: Device, status: DeviceStatus | None) -> dict[str, Any]:
    """A device of the server, with its counters of errors."""
    errors = dict(status.memory_errors) if status is not None else {}
    described = _of_device(number, device, status)
    return _known(**described, simulated=device.simulated or None, memoryErrors=errors or None)


def _of_device(number: int, device: Device, status: DeviceStatus | None) -> dict[str, Any]:
    status = status or DeviceStatus()
    return {
        "device": number,
        "id": device.id,
        "name": device.name,
        "cores": core_list(device.cores) or None,
        "utilization": status.utilisation,
        "memoryUsed": _bytes(status.memory_used),
        "memoryTotal": _bytes(status.memory_total),
        "temperature": status.temperature,
    }


def _known(**members: Any) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}


def _bytes(megabytes: int | None) -> int | None:
    return None if megabytes is None else megabytes * MB
