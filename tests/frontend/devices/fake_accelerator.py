"""An accelerator that is not Ascend: the rest of the server must not notice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar

import pytest

from msx_core.framework_device import FrameworkDevice
from msx_frontend.devices import choose
from msx_frontend.devices.accelerator import Accelerator, Device, DeviceStatus, Links, NoMorePortsError
from msx_frontend.devices.ascend import Ascend, Npu
from msx_frontend.devices.pool import DevicePool
from msx_frontend.findings import Finding, ok

VISIBLE = "FAKE_VISIBLE_DEVICES"
PORTS = "FAKE_PORTS"


class FakeAccelerator:
    """Devices f0, f1, …, `limit` of them; tests change `statuses`."""

    name: ClassVar[str] = "fake"
    kind: ClassVar[str] = "fake"
    title: ClassVar[str] = "FPU"
    tool: ClassVar[str] = "fpu-top"
    visible: ClassVar[str] = VISIBLE
    container: ClassVar[str] = "FAKE_CONTAINER_DEVICES"
    resource: ClassVar[str] = "FPU"
    framework: ClassVar[FrameworkDevice | None] = FrameworkDevice("Fake", "libfake.so")
    torch: ClassVar[str] = "fake"

    def __init__(self, limit: int | None = None, env: Mapping[str, str] = MappingProxyType({})) -> None:
        self.devices = [Device(f"f{number}", "Fake 1") for number in range(limit or 0)]
        self.statuses = {device.id: DeviceStatus("Good", True, 50, 1024, 4096) for device in self.devices}
        self.fast_links: dict[tuple[str, str], int] = {}
        self.port_blocks = 100
        self.ports_in_use: set[int] = set()
        """Blocks of which another process has some ports."""
        self.closed = False
        self.readings = 0

    def detect(self) -> Sequence[Device]:
        return self.devices

    def problems(self) -> Sequence[Finding]:
        return ()

    def simulated(self, count: int) -> Sequence[Device]:
        return [Device(f"f{number}", "simulated", simulated=True) for number in range(count)]

    def status(self) -> Mapping[str, DeviceStatus]:
        self.readings += 1
        return dict(self.statuses)

    def links(self) -> Links:
        return dict(self.fast_links)

    def environment(self, devices: Sequence[Device]) -> Mapping[str, str]:
        return {VISIBLE: "+".join(device.id for device in devices)}

    def collective_ports(self, block: int, *, shared: bool) -> Mapping[str, str] | None:
        if block >= self.port_blocks:
            raise NoMorePortsError(f"there are ports for {self.port_blocks} groups")
        if block in self.ports_in_use:
            return None
        return {PORTS: f"{7000 + 10 * block}-{7009 + 10 * block}"}

    def close(self) -> None:
        self.closed = True

    def check_software(self, packages: Sequence[Path]) -> Iterator[Finding]:
        yield ok("fake driver", "1.0")


def add_accelerator(monkeypatch: pytest.MonkeyPatch, fake: FakeAccelerator) -> None:
    """From now on this server knows `fake`, after its own accelerators."""

    class Added(FakeAccelerator):
        def __new__(cls, *_: Any) -> Any:
            return fake

    monkeypatch.setattr(choose, "KNOWN", (*choose.KNOWN, Added))


def npu_pool(count: int, first: int = 0, accelerator: Accelerator | None = None, **options: object) -> DevicePool:
    npus = [Npu(str(i), "910B") for i in range(first, first + count)]
    return DevicePool(accelerator or Ascend(env={}), npus, **options)  # type: ignore[arg-type]
