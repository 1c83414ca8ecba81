"""Readings of NVML as messages. It runs only in the process of `program.py`, because a call may hang in the driver."""

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pynvml

from msx_frontend.devices.nvidia.messages import (
    MOST_EVENTS,
    MOST_GPUS,
    MOST_PROCESSES,
    UNUSABLE,
    Gpu,
    GpuFigures,
    GpuLink,
    GpuReading,
    Inventory,
    MigInstance,
    UnreadableGpu,
    Xid,
)

LINKS = {"NVLink": 1, "board": 2, "PIX": 3, "PXB": 4, "PHB": 5, "NODE": 6, "SYS": 7}
"""Costs, the fastest first: NVLink, also through a switch; two processors of one card; one PCIe switch; several; the
host bridge of a CPU; within a NUMA node; from one NUMA node to another."""
_LEVELS = {
    pynvml.NVML_TOPOLOGY_INTERNAL: "board",
    pynvml.NVML_TOPOLOGY_SINGLE: "PIX",
    pynvml.NVML_TOPOLOGY_MULTIPLE: "PXB",
    pynvml.NVML_TOPOLOGY_HOSTBRIDGE: "PHB",
    pynvml.NVML_TOPOLOGY_NODE: "NODE",
    pynvml.NVML_TOPOLOGY_SYSTEM: "SYS",
}
_WHOLE_GPU = 0xFFFFFFFF
"""Number of the instance in an event that hit the whole card."""

Handle = Any


class _Optional:
    """Calls that may fail: None for what a card does not give. `error`: that of a card that is unusable, else 0."""

    def __init__(self) -> None:
        self.error = 0

    def __call__(self, call: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        try:
            return call(*arguments, **options)
        except pynvml.NVMLError as error:
            if error.value in UNUSABLE:
                self.error = error.value
            return None


class NvmlReader:
    """Opens the library at the first call that succeeds. The cards are those of then: a lost one keeps its handle.

    Methods raise pynvml.NVMLError where nothing can be read.
    """

    def __init__(self) -> None:
        self._handles: dict[str, Handle] | None = None
        """Each readable card by its UUID, in the order of the PCI bus."""
        self._indices: dict[str, int] = {}
        self._unreadable: list[UnreadableGpu] = []
        self._events: Any = None

    def inventory(self) -> Inventory:
        handles = self._opened()
        return Inventory(
            driver=_Optional()(pynvml.nvmlSystemGetDriverVersion) or "",
            cuda=_Optional()(pynvml.nvmlSystemGetCudaDriverVersion_v2) or 0,
            gpus=tuple(_gpu(self._indices[uuid], uuid, handle) for uuid, handle in handles.items()),
            unreadable=tuple(self._unreadable),
        )

    def figures(self) -> GpuReading:
        self._open_again()
        devices = [figures for uuid, handle in self._opened().items() for figures in _figures(uuid, handle)]
        return GpuReading(tuple(devices), tuple(itertools.islice(self._xids(), MOST_EVENTS)))

    def links(self) -> list[GpuLink]:
        pairs = itertools.combinations(self._opened().items(), 2)
        return [GpuLink(a, b, cost) for (a, at_a), (b, at_b) in pairs if (cost := _cost(at_a, at_b)) is not None]

    def _opened(self) -> dict[str, Handle]:
        if self._handles is None:
            pynvml.nvmlInitWithFlags(pynvml.NVML_INIT_FLAG_NO_GPUS)
            count = min(pynvml.nvmlDeviceGetCount(), MOST_GPUS)
            self._events = _Optional()(pynvml.nvmlEventSetCreate)
            self._handles = {}
            for index in range(count):
                self._open(index, self._handles)
        return self._handles

    def _open_again(self) -> None:
        """Open the cards that could not be opened before: one may have been reset."""
        handles, self._unreadable, failed = self._opened(), [], self._unreadable
        for one in failed:
            self._open(one.index, handles)

    def _open(self, index: int, handles: dict[str, Handle]) -> None:
        try:
            handle = pynvml.nvmlDeviceGetHandleByIndex(index)
            uuid = pynvml.nvmlDeviceGetUUID(handle)
        except pynvml.NVMLError as error:
            self._unreadable.append(UnreadableGpu(index, str(error)))
            return
        handles[uuid], self._indices[uuid] = handle, index
        if self._events is not None:
            supported = _Optional()(pynvml.nvmlDeviceGetSupportedEventTypes, handle) or 0
            wanted = supported & pynvml.nvmlEventTypeXidCriticalError
            _Optional()(pynvml.nvmlDeviceRegisterEvents, handle, wanted, self._events)

    def _xids(self) -> Iterator[Xid]:
        """Events that wait in the driver; ends when none is left (a time-out of 0 ms), or with another error."""
        read = _Optional()
        while self._events is not None and (event := read(pynvml.nvmlEventSetWait_v2, self._events, 0)) is not None:
            uuid = read(pynvml.nvmlDeviceGetUUID, event.device)
            if uuid is not None and event.eventType == pynvml.nvmlEventTypeXidCriticalError:
                whole = _WHOLE_GPU in (event.gpuInstanceId, event.computeInstanceId)
                place = (None, None) if whole else (event.gpuInstanceId, event.computeInstanceId)
                yield Xid(uuid, event.eventData, *place)


def _gpu(index: int, uuid: str, handle: Handle) -> Gpu:
    read = _Optional()
    pci, instances = read(pynvml.nvmlDeviceGetPciInfo_v3, handle), _instances(handle, read)
    return Gpu(
        index=index,
        uuid=uuid,
        name=read(pynvml.nvmlDeviceGetName, handle) or "NVIDIA GPU",
        bus_id=pci.busIdLegacy if pci else "",
        instances=None if instances is None else tuple(_instance(*one, read) for one in instances.items()),
    )


def _instances(handle: Handle, read: _Optional) -> dict[str, Handle] | None:
    """MIG instances by UUID; None for a card that is not in MIG mode."""
    mode = read(pynvml.nvmlDeviceGetMigMode, handle)
    if not mode or mode[0] != pynvml.NVML_DEVICE_MIG_ENABLE:
        return None
    most = read(pynvml.nvmlDeviceGetMaxMigDeviceCount, handle) or 0
    found = (read(pynvml.nvmlDeviceGetMigDeviceHandleByIndex, handle, index) for index in range(most))
    named = ((read(pynvml.nvmlDeviceGetUUID, one), one) for one in found if one is not None)
    return {uuid: one for uuid, one in named if uuid is not None}


def _instance(uuid: str, handle: Handle, read: _Optional) -> MigInstance:
    return MigInstance(
        uuid=uuid,
        name=read(pynvml.nvmlDeviceGetName, handle) or "MIG instance",
        gpu_instance=read(pynvml.nvmlDeviceGetGpuInstanceId, handle),
        compute_instance=read(pynvml.nvmlDeviceGetComputeInstanceId, handle),
    )


def _figures(uuid: str, handle: Handle) -> Iterator[GpuFigures]:
    """A card's, or those of its MIG instances."""
    instances = _instances(handle, _Optional())
    if instances is None:
        yield _figures_of(uuid, handle)
    else:
        yield from (_figures_of(*one) for one in instances.items())


def _figures_of(uuid: str, handle: Handle) -> GpuFigures:
    read = _Optional()
    rates = read(pynvml.nvmlDeviceGetUtilizationRates, handle)
    memory = read(pynvml.nvmlDeviceGetMemoryInfo, handle, version=pynvml.nvmlMemory_v2)
    memory = memory or read(pynvml.nvmlDeviceGetMemoryInfo, handle)
    rows = read(pynvml.nvmlDeviceGetRemappedRows, handle) or (0, 0, 0, 0)
    return GpuFigures(
        uuid=uuid,
        utilisation=rates.gpu if rates else None,
        memory_activity=rates.memory if rates else None,
        memory_used=memory.used >> 20 if memory else None,
        memory_total=memory.total >> 20 if memory else None,
        temperature=read(pynvml.nvmlDeviceGetTemperature, handle, pynvml.NVML_TEMPERATURE_GPU),
        memory_errors=_memory_errors(handle, read),
        remap_pending=bool(rows[2]),
        remap_failed=bool(rows[3]),
        processes=_processes(handle, read),
        error=read.error,  # after all the others
    )


def _memory_errors(handle: Handle, read: _Optional) -> dict[str, int]:
    """Since the driver was loaded."""
    kinds = {
        "corrected": pynvml.NVML_MEMORY_ERROR_TYPE_CORRECTED,
        "uncorrected": pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED,
    }
    counts = {
        kind: read(pynvml.nvmlDeviceGetTotalEccErrors, handle, number, pynvml.NVML_VOLATILE_ECC)
        for kind, number in kinds.items()
    }
    return {kind: count for kind, count in counts.items() if count is not None}


def _processes(handle: Handle, read: _Optional) -> dict[int, int] | None:
    """MB by process; None where the driver does not tell. A process that computes and draws is in several lists."""
    computing = read(pynvml.nvmlDeviceGetComputeRunningProcesses_v3, handle)
    if computing is None:
        return None
    others = (pynvml.nvmlDeviceGetGraphicsRunningProcesses_v3, pynvml.nvmlDeviceGetMPSComputeRunningProcesses_v3)
    every = itertools.chain(computing, *(read(call, handle) or () for call in others))
    found: dict[int, int] = {}
    for one in every:
        if one.usedGpuMemory is not None and (one.pid in found or len(found) < MOST_PROCESSES):
            found[one.pid] = max(found.get(one.pid, 0), one.usedGpuMemory >> 20)
    return found


def _cost(a: Handle, b: Handle) -> int | None:
    read = _Optional()
    if read(pynvml.nvmlDeviceGetP2PStatus, a, b, pynvml.NVML_P2P_CAPS_INDEX_NVLINK) == pynvml.NVML_P2P_STATUS_OK:
        return LINKS["NVLink"]
    level = _LEVELS.get(read(pynvml.nvmlDeviceGetTopologyCommonAncestor, a, b))
    return LINKS[level] if level else None
