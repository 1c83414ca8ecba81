"""A kind of device that models run on, as the server sees it. Implementations: `ascend.py`, `nvidia/`, `none.py`.

Nothing outside this package knows which kinds there are, how a driver names its devices, or which variables it reads.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Protocol

from msx_core.framework_device import FrameworkDevice
from msx_frontend.findings import Finding


@dataclass(frozen=True)
class Device:
    """`id` is the driver's name of it; the server's own number is its position in the list of devices."""

    id: str
    name: str
    simulated: bool = False
    """It exists only as a number: workers get its variables and compute on the CPU."""
    cores: frozenset[int] = frozenset()
    """Cores of the NUMA node that it is attached to; empty where that is not known."""
    alone: bool = False
    """A process that sees it sees no other device: a MIG instance of NVIDIA's."""


@dataclass(frozen=True)
class DeviceStatus:
    """One reading. Memory in MB, utilisation in percent, temperature in °C; None where the driver gives no number."""

    health: str = ""
    """The driver's word; "" where it gives none."""
    healthy: bool | None = None
    """Whether models may run on it; None where the reading does not tell."""
    utilisation: int | None = None
    memory_used: int | None = None
    memory_total: int | None = None
    temperature: int | None = None
    memory_errors: Mapping[str, int] = field(default_factory=dict)
    """Counters of ECC errors by the driver's name; they are shown, and not judged."""
    processes: Mapping[int, int] | None = None
    """Memory of each process on the device by its id in this container; None where the driver gives no such ids."""
    memory_activity: int | None = None
    """Percent of the time in which the device's memory was read or written: nvidia-smi's `utilization.memory`."""


Links = Mapping[tuple[str, str], int]
"""Cost of the link from one device to another, by their ids: the lower, the faster; without unknown ones."""


class NoMorePortsError(RuntimeError):
    """There is no such block of ports; the message says how many there are."""


class Accelerator(Protocol):
    """All that differs between kinds of devices. One is chosen at the start (`choose_accelerator`); of the others only
    the names are used. Methods that say so block, and are called on a thread."""

    name: ClassVar[str]
    """The value of `accelerator` in config.properties that chooses it: "ascend"."""
    kind: ClassVar[str]
    """`deviceType` of the describe API: "npu", or "cpu" on a machine without devices."""
    title: ClassVar[str]
    """Name of one device for people: "NPU"."""
    tool: ClassVar[str]
    """Command that shows people the health of the devices."""
    visible: ClassVar[str]
    """Environment variable that names the devices of a process: workers do not inherit that of the chosen kind."""
    container: ClassVar[str]
    """Environment variable by which a container's runtime chooses devices, or "". It is shown, and never applied: the
    runtime has done that."""
    resource: ClassVar[str]
    """Ray's name of the resource that stands for one device."""
    framework: ClassVar[FrameworkDevice | None]
    """MindSpore's name of the kind; None where MindSpore computes on the CPU beside these devices."""
    torch: ClassVar[str]
    """Module of torch that computes on them (`cuda`: `torch.cuda`); "" where torch does not."""

    def __init__(self, limit: int | None = None, env: Mapping[str, str] = os.environ) -> None:
        """`limit`: the most devices to use; None for all. `env`: the environment that the server has inherited."""

    def detect(self) -> Sequence[Device]:
        """The devices that the server may use, in the order of their numbers. Blocks."""

    def problems(self) -> Sequence[Finding]:
        """Each reason why `detect` could not read a device, or may have misread which are meant; empty when all is
        well."""

    def simulated(self, count: int) -> Sequence[Device]:
        """So many devices of this kind that exist only as numbers; inherited ids of visible devices name them."""

    def status(self) -> Mapping[str, DeviceStatus]:
        """The present state by device id; empty where it cannot be read. Blocks."""

    def links(self) -> Links:
        """How the detected devices are connected; empty where that is not known. Blocks."""

    def environment(self, devices: Sequence[Device]) -> Mapping[str, str]:
        """Variables that show these devices, and no others, to a process: each rank sees all devices of its group, and
        a worker on the CPU (no devices) sees none."""

    def collective_ports(self, block: int, *, shared: bool) -> Mapping[str, str] | None:
        """Variables that give the collectives of one worker group ports of its own: blocks are disjoint, from 0 on.

        `shared`: another group may be on the same devices. None where other processes have some of the ports now.
        Raises NoMorePortsError.
        """

    def close(self) -> None:
        """End the processes that read the devices. Blocks for a moment; no other method is called after it."""

    def check_software(self, packages: Sequence[Path]) -> Iterator[Finding]:
        """Findings about the vendor's software that these devices need beside their tool, for `msx-serve doctor`.

        `packages`: folders that workers import packages from. Nothing is imported.
        """


def figures(statuses: Mapping[str, DeviceStatus], devices: Sequence[Device]) -> Iterator[tuple[int, DeviceStatus]]:
    """The status of the devices that have one, with the server's numbers of them."""
    for number, device in enumerate(devices):
        if device.id in statuses:
            yield number, statuses[device.id]
