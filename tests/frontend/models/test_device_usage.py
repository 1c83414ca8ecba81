"""The text `gpuUsage` as TorchServe has it, and the typed members of a device."""

from __future__ import annotations

from msx_frontend.devices.accelerator import Device, DeviceStatus
from msx_frontend.models.device_usage import gpu_usage, server_device, worker_devices
from msx_frontend.resources.worker_device import WorkerDevice

GPU = Device("GPU-8a1f", "NVIDIA H100", cores=frozenset(range(4)))
BUSY = DeviceStatus("", True, 37, 1, 81559, temperature=41, memory_errors={"corrected": 2}, memory_activity=5)


def device(status: DeviceStatus | None, number: int = 0, memory: int | None = None) -> WorkerDevice:
    return WorkerDevice(number, GPU, status, memory)


def test_the_text_is_torchserves() -> None:
    expected = "gpuId::0 utilization.gpu [%]::37 % utilization.memory [%]::5 % memory.used [MiB]::1 MiB"
    assert gpu_usage([device(BUSY)]) == expected


def test_figures_that_a_device_does_not_have() -> None:
    expected = "gpuId::3 utilization.gpu [%]::[N/A] utilization.memory [%]::[N/A] memory.used [MiB]::[N/A]"
    assert gpu_usage([device(DeviceStatus(), 3)]) == expected


def test_a_worker_of_several_devices_and_one_of_none() -> None:
    both = gpu_usage([device(BUSY), device(None, 1), device(BUSY, 2)]).split(", ")
    assert [text.split()[0] for text in both] == ["gpuId::0", "gpuId::2"]
    assert gpu_usage([]) == gpu_usage([device(None)]) == "N/A"


def test_members_are_those_that_are_known() -> None:
    known = {"device": 1, "id": "GPU-8a1f", "name": "NVIDIA H100", "cores": "0-3"}
    figures = {"utilization": 37, "memoryUsed": 1 << 20, "memoryTotal": 81559 << 20, "temperature": 41}
    assert worker_devices([device(None, 1)]) == [known]
    assert worker_devices([device(BUSY, 1, 512)]) == [{**known, **figures, "workerMemory": 512}]
    assert server_device(1, GPU, None) == known
    assert server_device(1, GPU, BUSY) == {**known, **figures, "memoryErrors": {"corrected": 2}}
    assert server_device(0, Device("0", "simulated", simulated=True), None)["simulated"]
