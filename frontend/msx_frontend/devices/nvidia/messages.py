"""Messages between the server and the process that reads NVML: one line of JSON each, one call at a time."""

from typing import Any, Literal

import msgspec

MOST_LINE = 4 << 20
"""Bytes of a line at most."""
MOST_GPUS = 64
"""GPUs that are read at most; MIG divides each into up to seven devices."""
MOST_PROCESSES = 128
"""Processes of one device that are read at most."""
MOST_EVENTS = 64
"""XIDs that one reading takes at most; the next takes those behind them."""

UNUSABLE = {15: "lost", 16: "reset required"}
"""NVML's errors GPU_IS_LOST (it has fallen off the bus) and RESET_REQUIRED, in the words that are shown."""

CallName = Literal["inventory", "figures", "links"]


class NvmlCall(msgspec.Struct):
    call: CallName


class NvmlAnswer(msgspec.Struct, omit_defaults=True):
    """`result` is the message that the call returns, where `code`, NVML's number of an error, is 0."""

    result: Any = None
    code: int = 0
    message: str = ""


class MigInstance(msgspec.Struct, frozen=True):
    uuid: str
    name: str
    gpu_instance: int | None = None
    """None where NVML does not tell, as the next one."""
    compute_instance: int | None = None


class Gpu(msgspec.Struct, frozen=True, omit_defaults=True):
    """A card. `instances` is None where it is not in MIG mode."""

    index: int
    """Its number in the order of the PCI bus, as `nvidia-smi` counts, unreadable ones included."""
    uuid: str
    name: str
    bus_id: str = ""
    """PCI address, such as 0000:1B:00.0; "" where NVML does not give it."""
    instances: tuple[MigInstance, ...] | None = None


class UnreadableGpu(msgspec.Struct, frozen=True):
    index: int
    reason: str
    """NVML's words."""


class Inventory(msgspec.Struct, frozen=True):
    driver: str
    """Its version; "" where NVML does not tell."""
    cuda: int
    """The newest CUDA that the driver takes, 12040 for 12.4; 0 where NVML does not tell."""
    gpus: tuple[Gpu, ...]
    unreadable: tuple[UnreadableGpu, ...] = ()


class GpuFigures(msgspec.Struct, frozen=True, omit_defaults=True):
    """One reading of a card, or of a MIG instance. None where NVML gives no number."""

    uuid: str
    error: int = 0
    """NVML's number of the error that makes the card unusable, of `UNUSABLE`; else 0."""
    utilisation: int | None = None
    memory_used: int | None = None
    """MB, as the next one."""
    memory_total: int | None = None
    temperature: int | None = None
    memory_errors: dict[str, int] = {}
    remap_pending: bool = False
    remap_failed: bool = False
    processes: dict[int, int] | None = None
    """MB by process."""
    memory_activity: int | None = None
    """NVML's `utilization.memory`."""

    @property
    def answers(self) -> bool:
        """Whether the card gave any figure; memory alone says little, which some cards share with the host."""
        given = (self.utilisation, self.memory_total, self.temperature, self.processes)
        return any(figure is not None for figure in given)


class Xid(msgspec.Struct, frozen=True):
    """A critical error of a card since the last reading. The numbers of an instance are None where it hit the card."""

    uuid: str
    number: int
    gpu_instance: int | None = None
    compute_instance: int | None = None


class GpuReading(msgspec.Struct, frozen=True):
    devices: tuple[GpuFigures, ...]
    xids: tuple[Xid, ...] = ()


class GpuLink(msgspec.Struct, frozen=True):
    a: str
    b: str
    cost: int
