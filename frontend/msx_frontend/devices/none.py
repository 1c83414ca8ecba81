"""A machine without devices: models run on the CPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msx_frontend.devices.accelerator import Device, DeviceStatus, Links


class NoAccelerator:
    """`variables`: those of all known accelerators, which an inherited environment may have nevertheless."""

    kind = "cpu"

    def __init__(self, variables: frozenset[str] = frozenset()) -> None:
        self.variables = variables

    def detect(self) -> Sequence[Device]:
        return ()

    def status(self) -> Mapping[str, DeviceStatus]:
        return {}

    def links(self) -> Links:
        return {}

    def environment(self, devices: Sequence[Device]) -> Mapping[str, str]:
        return {}

    def collective_ports(self, block: int, *, shared: bool) -> Mapping[str, str]:
        return {}
