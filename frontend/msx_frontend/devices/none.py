"""A machine without devices: models run on the CPU."""

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from msx_core.framework_device import FrameworkDevice
from msx_frontend.devices.accelerator import Device, DeviceStatus, Links
from msx_frontend.findings import Finding


class NoAccelerator:
    name: ClassVar[str] = "none"
    kind: ClassVar[str] = "cpu"
    title: ClassVar[str] = "CPU"
    tool: ClassVar[str] = ""
    visible: ClassVar[str] = ""
    container: ClassVar[str] = ""
    resource: ClassVar[str] = "CPU"
    framework: ClassVar[FrameworkDevice | None] = None
    torch: ClassVar[str] = ""

    def __init__(
        self, limit: int | None = None, env: Mapping[str, str] = os.environ, *, hidden: Collection[str] = ()
    ) -> None:
        """`hidden`: variables of the devices that the server is not to use: workers see none of them, whatever they
        inherit. The others are not used."""
        self._hidden = hidden

    def detect(self) -> Sequence[Device]:
        return ()

    def problems(self) -> Sequence[Finding]:
        return ()

    def simulated(self, count: int) -> Sequence[Device]:
        return ()

    def status(self) -> Mapping[str, DeviceStatus]:
        return {}

    def links(self) -> Links:
        return {}

    def environment(self, devices: Sequence[Device]) -> Mapping[str, str]:
        return dict.fromkeys(self._hidden, "")

    def collective_ports(self, block: int, *, shared: bool) -> Mapping[str, str]:
        return {}

    def close(self) -> None:
        """Nothing is open."""

    def check_software(self, packages: Sequence[Path]) -> Iterator[Finding]:
        return iter(())
