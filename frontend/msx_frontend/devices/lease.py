"""The devices of one worker group."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from msx_core.framework_device import FrameworkDevice
from msx_frontend.devices.accelerator import Device
from msx_frontend.devices.nodes import GroupPlacement
from msx_frontend.devices.sharing_terms import SHARED, SharingTerms


@dataclass(frozen=True, eq=False)
class Lease:
    """`numbers` are positions in the server's list of devices, in its order; none for a worker on the CPU."""

    model_key: str
    numbers: tuple[int, ...] = ()
    devices: tuple[Device, ...] = ()
    terms: SharingTerms = SHARED
    port_block: int | None = None
    """Which part of the ports of collectives is its own; None where it needs none."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables that show the devices to each of its ranks."""
    framework: FrameworkDevice | None = None
    """MindSpore's name of the devices; None where it does not know them, and for a worker on the CPU."""
    torch: str = ""
    """Module of torch that computes on the devices; "" where torch does not, and for a worker on the CPU."""
    placement: GroupPlacement | None = None
    """Nodes of a cluster that it is on; None on this machine."""

    @property
    def device_ids(self) -> str | None:
        """As the driver names them, comma-separated; None for a worker on the CPU."""
        return ",".join(device.id for device in self.devices) if self.devices else None

    def devices_of(self, rank: int, ranks: int) -> tuple[Device, ...]:
        """Each of several ranks has one; a worker of one process has them all."""
        return self.devices[rank : rank + 1] if ranks > 1 else self.devices
