"""Ascend NPUs, by `npu-smi` and the driver's files. Nothing here imports MindSpore or starts CANN."""

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import permutations
from pathlib import Path
from typing import ClassVar

from msx_core.framework_device import FrameworkDevice
from msx_frontend.devices.accelerator import Device, DeviceStatus, Links
from msx_frontend.devices.cann import check_cann
from msx_frontend.devices.hccl_ports import hccl_ports
from msx_frontend.devices.local_cores import PCI, local_cores
from msx_frontend.devices.npu_smi import UNKNOWN, Chip, ChipKey, ChipRow, NpuSmi, parse_mapping, parse_table
from msx_frontend.devices.npu_smi_topo import LINKS, Label, TopoRow, parse_topo
from msx_frontend.devices.pid_namespace import NAMESPACE, is_of_host
from msx_frontend.findings import Finding

VISIBLE = "ASCEND_RT_VISIBLE_DEVICES"


@dataclass(frozen=True)
class Npu(Device):
    """`id` is the chip's logic id, which CANN takes; `key` is None where npu-smi does not list it."""

    key: ChipKey | None = None
    phy: int | None = None
    """Physical id; None where npu-smi does not show it."""
    bus_id: str = ""
    """PCI address; "" where npu-smi does not show it."""

    @property
    def labels(self) -> tuple[Label, ...]:
        """Labels that `npu-smi info -t topo` may give it: it names physical ids, or else cards."""
        phy = int(self.id) if self.phy is None else self.phy
        return (Label("Phy-ID", phy), *([Label("NPU", self.key.npu)] if self.key else []))


class Ascend:
    """`limit` is `number_of_npu`: the most devices to use."""

    name: ClassVar[str] = "ascend"
    kind: ClassVar[str] = "npu"
    title: ClassVar[str] = "NPU"
    tool: ClassVar[str] = "npu-smi info"
    visible: ClassVar[str] = VISIBLE
    container: ClassVar[str] = "ASCEND_VISIBLE_DEVICES"
    resource: ClassVar[str] = "NPU"
    framework: ClassVar[FrameworkDevice | None] = FrameworkDevice("Ascend", "libascendcl.so")
    torch: ClassVar[str] = ""

    def __init__(
        self,
        limit: int | None = None,
        env: Mapping[str, str] = os.environ,
        *,
        dev: Path = Path("/dev"),
        pci: Path = PCI,
        namespace: Path = NAMESPACE,
        timeout: float = 10.0,
    ) -> None:
        """`timeout`: seconds for each call of npu-smi."""
        self._limit, self._env, self._dev, self._pci = limit, env, dev, pci
        self._namespace = namespace
        self._tool = NpuSmi(env, timeout)
        self._npus: Sequence[Npu] = ()
        self._health_known: set[str] = set()
        self._detected: dict[ChipKey, ChipRow] = {}
        """Chips as `detect` has read them, until the first `status` takes them: the tool needs a second or more."""

    def detect(self) -> Sequence[Npu]:
        """An inherited ASCEND_RT_VISIBLE_DEVICES limits the devices, then `limit` does."""
        found = self._from_npu_smi() or _from_device_files(self._dev)
        self._npus = self._visible(found)[: self._limit]
        self._npus = [replace(npu, cores=self._cores(npu)) for npu in self._npus]
        return self._npus

    def problems(self) -> Sequence[Finding]:
        return ()

    def simulated(self, count: int) -> Sequence[Npu]:
        ids = visible_ids(self._env, range(1024)) or range(count)
        return [Npu(str(i), "simulated", simulated=True) for i in ids[:count]]

    def status(self) -> Mapping[str, DeviceStatus]:
        """See `Accelerator`. Processes have the host's ids."""
        if not any(npu.key for npu in self._npus):
            return {}
        table, self._detected = self._detected or parse_table(self._tool.read("info")), {}
        statuses = {npu.id: self._judged(npu, table[npu.key].status) for npu in self._npus if npu.key in table}
        if is_of_host(self._namespace):
            return statuses
        return {id: replace(status, processes=None) for id, status in statuses.items()}

    def links(self) -> Links:
        """Links by `npu-smi info -t topo`."""
        pairs = permutations(self._npus, 2)
        return {(a.id, b.id): cost for a, b in pairs if (cost := self._link(a, b)) is not None}

    def environment(self, devices: Sequence[Device]) -> Mapping[str, str]:
        """Ascending and without spaces: CANN stops reading at anything else. The pool gives devices in this order."""
        return {VISIBLE: ",".join(device.id for device in devices)}

    def collective_ports(self, block: int, *, shared: bool) -> Mapping[str, str] | None:
        return hccl_ports(block, self._env, shared=shared)

    def close(self) -> None:
        """`npu-smi` ends by itself."""

    def check_software(self, packages: Sequence[Path]) -> Iterator[Finding]:
        return check_cann(self._env)

    @cached_property
    def _topo(self) -> dict[Label, TopoRow]:
        """It does not change while the machine runs."""
        return parse_topo(self._tool.read("info", "-t", "topo")) if any(npu.key for npu in self._npus) else {}

    def _link(self, a: Npu, b: Npu) -> int | None:
        """Chips of one card that the tool does not tell apart are on one PCIe switch."""
        row_a, row_b = (next(filter(self._topo.__contains__, npu.labels), None) for npu in (a, b))
        if row_a is None or row_b is None:
            return None
        return LINKS["PIX"] if row_a == row_b else self._topo[row_a].links.get(row_b)

    def _judged(self, npu: Npu, status: DeviceStatus) -> DeviceStatus:
        """A chip of unknown health is unhealthy if its health was known before."""
        if status.healthy is not None:
            self._health_known.add(npu.id)
        elif status.health.lower() == UNKNOWN and npu.id in self._health_known:
            return replace(status, healthy=False)
        return status

    def _cores(self, npu: Npu) -> frozenset[int]:
        """The cores near a chip, as npu-smi shows them, else as the kernel knows them of the PCI device."""
        rows = (self._topo[label] for label in npu.labels if label in self._topo)
        return next((row.cores for row in rows if row.cores), frozenset()) or local_cores(self._pci, npu.bus_id)

    def _visible(self, found: Sequence[Npu]) -> list[Npu]:
        visible = visible_ids(self._env, {int(npu.id) for npu in found})
        return [npu for npu in found if visible is None or int(npu.id) in visible]

    def _from_npu_smi(self) -> list[Npu]:
        table = self._detected = parse_table(self._tool.read("info"))
        mapping = parse_mapping(self._tool.read("info", "-m"))
        if not mapping:  # old tools: the table's order is that of the logic ids
            mapping = {key: Chip(logic=i, name=row.name) for i, (key, row) in enumerate(table.items())}
        npus = [
            Npu(str(chip.logic), chip.name, key=key, phy=chip.phy, bus_id=table[key].bus_id if key in table else "")
            for key, chip in mapping.items()
        ]
        return sorted(npus, key=lambda npu: int(npu.id))


def visible_ids(env: Mapping[str, str], present: Collection[int]) -> list[int] | None:
    """Ids that CANN takes from ASCEND_RT_VISIBLE_DEVICES: up to the first one that is malformed, absent or not
    ascending. None when the variable is not set."""
    text = env.get(VISIBLE)
    if text is None:
        return None
    ids: list[int] = []
    for part in text.split(","):
        if not part.isdecimal() or int(part) not in present or (ids and int(part) <= ids[-1]):
            break
        ids.append(int(part))
    return ids


def _from_device_files(dev: Path) -> list[Npu]:
    """/dev/davinci0, …; /dev/davinci_manager is the driver itself."""
    numbers = sorted(int(n) for path in dev.glob("davinci*") if (n := path.name.removeprefix("davinci")).isdecimal())
    return [Npu(str(number), "davinci") for number in numbers]
