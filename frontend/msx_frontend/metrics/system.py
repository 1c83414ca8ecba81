"""Periodic figures of the machine: CPU, memory, disk, devices; or the output of a command of the user."""

from __future__ import annotations

import asyncio
import logging
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol

import psutil

from msx_frontend.metrics.line import parse_metric
from msx_protocol import MetricSample

log = logging.getLogger("msx.metrics")

Collect = Callable[[], list[MetricSample]]
Take = Callable[[list[MetricSample]], None]

MB, GB = 1 << 20, 1 << 30


class DeviceFigures(Protocol):
    """One device: memory in MB, utilisation in percent; None where it is not known."""

    @property
    def utilisation(self) -> int | None: ...

    @property
    def memory_used(self) -> int | None: ...

    @property
    def memory_total(self) -> int | None: ...


Devices = Callable[[], Iterable[tuple[int, DeviceFigures]]]
"""Reads the devices, each with the server's number of it."""


class SystemMetrics:
    """Calls `collect` on a thread, at once and every `interval` seconds; `take` gets the result on the loop."""

    def __init__(self, collect: Collect, take: Take, interval: float) -> None:
        self._collect = collect
        self._take = take
        self._interval = interval
        self._task = asyncio.create_task(self._run(), name="system-metrics")

    async def close(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        while True:
            try:
                self._take(await asyncio.to_thread(self._collect))
            except Exception:
                log.exception("the metrics of the machine could not be collected")
            await asyncio.sleep(self._interval)


def of_machine(devices: Devices) -> Collect:
    """TorchServe's figures of the host; its figures of GPUs are those of the server's devices."""

    def collect() -> list[MetricSample]:
        memory, disk = psutil.virtual_memory(), psutil.disk_usage("/")
        return [
            _host("CPUUtilization", "Percent", psutil.cpu_percent()),
            _host("MemoryUsed", "Megabytes", memory.used / MB),
            _host("MemoryAvailable", "Megabytes", memory.available / MB),
            _host("MemoryUtilization", "Percent", memory.percent),
            _host("DiskUsage", "Gigabytes", disk.used / GB),
            _host("DiskAvailable", "Gigabytes", disk.free / GB),
            _host("DiskUtilization", "Percent", disk.percent),
            *(sample for number, figures in devices() for sample in _of_device(str(number), figures)),
        ]

    return collect


def of_command(command: str, limit: float) -> Collect:
    """Metric lines of the standard output of a command, up to an empty line. The command may run for `limit`
    seconds."""

    def collect() -> list[MetricSample]:
        arguments = _runnable(shlex.split(command))
        try:
            done = subprocess.run(
                arguments, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=limit, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            log.error("system_metrics_cmd: %s", error)
            return []
        if done.returncode:
            log.error("system_metrics_cmd: %s ended with %d: %s", command, done.returncode, done.stderr.strip()[-500:])
        return list(_parsed(done.stdout))

    return collect


def _runnable(arguments: list[str]) -> list[str]:
    """TorchServe allows the name of a Python script; `ts/metrics/metric_collector.py` is in the package `ts`."""
    if not arguments or not arguments[0].endswith(".py") or os.access(arguments[0], os.X_OK):
        return arguments
    script = Path(arguments[0])
    package = find_spec("ts") if script.parts[0] == "ts" and not script.exists() else None
    if package is not None and package.origin:
        script = Path(package.origin).parent.joinpath(*script.parts[1:])
    return [sys.executable, str(script), *arguments[1:]]


def _parsed(text: str) -> Iterator[MetricSample]:
    for line in text.splitlines():
        if not line.strip():
            return
        try:
            yield parse_metric(line)
        except ValueError as error:
            log.warning("system_metrics_cmd: a line of it is left out: %s", error)


def _of_device(device: str, figures: DeviceFigures) -> Iterator[MetricSample]:
    if figures.memory_used is not None and figures.memory_total:
        yield _host("GPUMemoryUtilization", "Percent", 100 * figures.memory_used / figures.memory_total, device)
        yield _host("GPUMemoryUsed", "Megabytes", figures.memory_used, device)
    if figures.utilisation is not None:
        yield _host("GPUUtilization", "Percent", figures.utilisation, device)


def _host(name: str, unit: str, value: float, device: str | None = None) -> MetricSample:
    labels = [("Level", "Host"), *([("DeviceId", device)] if device is not None else [])]
    return MetricSample(name, "gauge", unit, round(float(value), 2), labels)
