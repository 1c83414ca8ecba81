"""GPUs of NVIDIA as an accelerator. A process of its own reads them (`process.py`); the server never loads CUDA."""

import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import ClassVar, TypeVar

from msx_core.framework_device import FrameworkDevice
from msx_frontend.devices.accelerator import Device, DeviceStatus, Links
from msx_frontend.devices.health import MISSING
from msx_frontend.devices.local_cores import PCI, local_cores
from msx_frontend.devices.nvidia import library
from msx_frontend.devices.nvidia.gpus import NvidiaGpu, devices_of, simulated_gpus
from msx_frontend.devices.nvidia.health import XidLog, fault
from msx_frontend.devices.nvidia.messages import CallName, GpuFigures, GpuLink, GpuReading, Inventory
from msx_frontend.devices.nvidia.problems import (
    ORDER_UNKNOWN,
    GpuProblem,
    UnreadableError,
    names_none,
    no_entry,
    no_library,
    problems_of,
)
from msx_frontend.devices.nvidia.process import NvmlProcess
from msx_frontend.devices.nvidia.torch_build import check_torch
from msx_frontend.devices.nvidia.visible import NONE, ORDER, VISIBLE, entries, order_is_unknown, visible_ids
from msx_frontend.devices.pid_namespace import NAMESPACE, is_of_host
from msx_frontend.findings import Finding, failed, ok, warning

log = logging.getLogger("msx.devices")

T = TypeVar("T")


class Nvidia:
    name: ClassVar[str] = "nvidia"
    kind: ClassVar[str] = "gpu"
    title: ClassVar[str] = "GPU"
    tool: ClassVar[str] = "nvidia-smi"
    visible: ClassVar[str] = VISIBLE
    container: ClassVar[str] = "NVIDIA_VISIBLE_DEVICES"
    resource: ClassVar[str] = "GPU"
    framework: ClassVar[FrameworkDevice | None] = None
    torch: ClassVar[str] = "cuda"

    def __init__(
        self,
        limit: int | None = None,
        env: Mapping[str, str] = os.environ,
        *,
        pci: Path = PCI,
        namespace: Path = NAMESPACE,
        timeout: float = 10.0,
    ) -> None:
        """`timeout`: seconds for each reading of NVML."""
        self._limit, self._env, self._pci, self._timeout = limit, env, pci, timeout
        self._has_host_pids = is_of_host(namespace)
        self._process: NvmlProcess | None = None
        self._inventory: Inventory | None = None
        self._gpus: Sequence[NvidiaGpu] = ()
        self._xids = XidLog()
        self._problems: list[GpuProblem] = []
        self._failed: GpuProblem | None = None
        """Why the last reading failed; None when it did not."""

    def detect(self) -> Sequence[NvidiaGpu]:
        """An inherited CUDA_VISIBLE_DEVICES limits the devices and gives their order, then `limit` limits them."""
        listed = self._env.get(VISIBLE)
        if self._limit == 0:
            return ()
        if listed is not None and not entries(listed):
            self._problems = [] if listed.strip() in NONE else [no_entry(listed)]
            return ()
        inventory = self._read_inventory()
        if inventory is not None:
            self._gpus = self._chosen(inventory, listed)[: self._limit]
            self._gpus = [replace(gpu, cores=self._cores(gpu, inventory)) for gpu in self._gpus]
        if not self._gpus and self._process is not None:
            self._process.stop()
        return self._gpus

    def problems(self) -> Sequence[Finding]:
        every = self._problems + ([self._failed] if self._failed else [])
        return [(warning if one.minor else failed)(f"{self.title}s", one.found, one.remedy) for one in every]

    def simulated(self, count: int) -> Sequence[Device]:
        return simulated_gpus(self._env.get(VISIBLE, ""), count)

    def status(self) -> Mapping[str, DeviceStatus]:
        if not self._gpus:
            return {}
        reading = self._ask("figures", GpuReading)
        if reading is None:
            return {}
        self._xids.add(reading.xids)
        figures = {one.uuid: one for one in reading.devices}
        return {gpu.id: self._status(gpu, figures.get(gpu.id)) for gpu in self._gpus}

    def links(self) -> Links:
        """NVLink, else the way over PCIe; a MIG instance has none."""
        ids = {gpu.id for gpu in self._gpus}
        if len(ids) < 2:
            return {}
        found = self._ask("links", list[GpuLink]) or []
        both = [(pair, link.cost) for link in found for pair in ((link.a, link.b), (link.b, link.a))]
        return {pair: cost for pair, cost in both if ids.issuperset(pair)}

    def environment(self, devices: Sequence[Device]) -> Mapping[str, str]:
        """Name them in the order in which CUDA numbers them then, whichever CUDA_DEVICE_ORDER the process has."""
        return {VISIBLE: ",".join(device.id for device in devices)}

    def collective_ports(self, block: int, *, shared: bool) -> Mapping[str, str]:
        """None: NCCL takes free ports, and its ranks meet at MASTER_PORT, which each start of a group chooses anew."""
        return {}

    def close(self) -> None:
        if self._process is not None:
            self._process.close()

    def check_software(self, packages: Sequence[Path]) -> Iterator[Finding]:
        if self._inventory is not None:
            yield ok("NVIDIA driver", _versions(self._inventory))
        yield from check_torch(packages, self._inventory.cuda if self._inventory is not None else 0)

    def _read_inventory(self) -> Inventory | None:
        """None on a machine without NVML, and where it cannot be read."""
        if self._process is None and (path := library.library_path(self._env)) is not None:
            self._process = NvmlProcess(path, self._timeout)
        self._inventory = self._ask("inventory", Inventory)
        self._problems = list(problems_of(self._inventory)) if self._inventory else []
        if self._process is None and library.DRIVER.exists():
            self._problems = [no_library(library.DRIVER)]
        return self._inventory

    def _ask(self, call: CallName, answer: type[T]) -> T | None:
        """None where there is no answer. A problem is logged once, until another one or an answer comes."""
        if self._process is None:
            return None
        answered, problem = None, None
        try:
            answered = self._process.ask(call, answer)
        except UnreadableError as error:
            problem = error.problem
        before, self._failed = self._failed, problem  # only now: several threads may read at once
        if problem is not None and call != "inventory" and problem != before and not self._process.closed:
            log.warning("%s", problem.sentence)
        return answered

    def _chosen(self, inventory: Inventory, listed: str | None) -> list[NvidiaGpu]:
        gpus = {device.id: device for gpu in inventory.gpus for device in devices_of(gpu)}
        if listed is None:
            return list(gpus.values())
        chosen = [gpus[id] for id in visible_ids(listed, inventory)]
        if gpus and not chosen:
            self._problems.append(names_none(listed, len(gpus)))
        elif order_is_unknown(listed, self._env.get(ORDER, ""), inventory.gpus):
            self._problems.append(ORDER_UNKNOWN)
        return chosen

    def _cores(self, gpu: NvidiaGpu, inventory: Inventory) -> frozenset[int]:
        bus_id = next(one.bus_id for one in inventory.gpus if one.uuid == gpu.gpu)
        return local_cores(self._pci, bus_id)

    def _status(self, gpu: NvidiaGpu, figures: GpuFigures | None) -> DeviceStatus:
        if figures is None:
            return DeviceStatus(MISSING, healthy=False)
        word = fault(figures, self._xids.find(gpu))
        return DeviceStatus(
            health=word or ("OK" if figures.answers else ""),
            healthy=False if word else True if figures.answers else None,
            utilisation=figures.utilisation,
            memory_used=figures.memory_used,
            memory_total=figures.memory_total,
            temperature=figures.temperature,
            memory_errors=figures.memory_errors,
            processes=figures.processes if self._has_host_pids else None,
            memory_activity=figures.memory_activity,
        )


def _versions(inventory: Inventory) -> str:
    major, minor = inventory.cuda // 1000, inventory.cuda % 1000 // 10
    cuda = f", for CUDA up to {major}.{minor}" if inventory.cuda else ""
    return f"{inventory.driver or 'of unknown version'}{cuda}"
