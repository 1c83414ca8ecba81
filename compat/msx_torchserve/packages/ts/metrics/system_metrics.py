"""`ts.metrics.system_metrics`: figures of the machine, which scripts for `system_metrics_cmd` add theirs to."""

import logging
from types import FunctionType, ModuleType
from typing import Any

import psutil

from .. import _extras  # its function would be taken for one of figures
from .dimension import Dimension
from .metric import Metric

MB, GB = 1 << 20, 1 << 30

system_metrics: list[Metric] = []
dimension = [Dimension("Level", "Host")]


def cpu_utilization() -> None:
    _add("CPUUtilization", psutil.cpu_percent(), "percent")


def memory_used() -> None:
    _add("MemoryUsed", psutil.virtual_memory().used / MB, "MB")


def memory_available() -> None:
    _add("MemoryAvailable", psutil.virtual_memory().available / MB, "MB")


def memory_utilization() -> None:
    _add("MemoryUtilization", psutil.virtual_memory().percent, "percent")


def disk_used() -> None:
    _add("DiskUsage", psutil.disk_usage("/").used / GB, "GB")


def disk_utilization() -> None:
    _add("DiskUtilization", psutil.disk_usage("/").percent, "percent")


def disk_available() -> None:
    _add("DiskAvailable", psutil.disk_usage("/").free / GB, "GB")


def gpu_utilization(num_of_gpu: int | None) -> None:
    """Measure all GPUs of the machine by NVML, where `num_of_gpu` says that there are some."""
    if not num_of_gpu:
        return
    nvml = _extras.need("pynvml")
    try:
        nvml.nvmlInit()
        for number in range(nvml.nvmlDeviceGetCount()):
            _add_gpu(nvml, number)
    except nvml.NVMLError as error:
        logging.error("the GPUs cannot be measured: %s", error)


def _add_gpu(nvml: Any, number: int) -> None:
    """A part of a GPU (MIG) has no utilisation."""
    of_gpu = [*dimension, Dimension("DeviceId", str(number))]
    try:
        handle = nvml.nvmlDeviceGetHandleByIndex(number)
        memory = nvml.nvmlDeviceGetMemoryInfo(handle)
        system_metrics.append(Metric("GPUMemoryUtilization", memory.used / memory.total * 100, "percent", of_gpu))
        system_metrics.append(Metric("GPUMemoryUsed", memory.used / MB, "MB", of_gpu))
        utilisation = nvml.nvmlDeviceGetUtilizationRates(handle).gpu
        system_metrics.append(Metric("GPUUtilization", utilisation, "percent", of_gpu))
    except nvml.NVMLError as error:
        logging.error("GPU %d cannot be measured: %s", number, error)


def collect_all(mod: ModuleType, num_of_gpu: int | None = 0) -> None:
    """Call each function of the module but this one, and log what is in `system_metrics` then: a line each, and an
    empty one."""
    for name, function in sorted(vars(mod).items()):
        if not isinstance(function, FunctionType) or name.startswith("_") or name in ("collect_all", "log_msg"):
            continue
        arguments: tuple[Any, ...] = (num_of_gpu,) if name == "gpu_utilization" else ()
        function(*arguments)
    for metric in system_metrics:
        logging.info("%s", metric)
    logging.info("")


def _add(name: str, value: float, unit: str) -> None:
    system_metrics.append(Metric(name, value, unit, dimension))
