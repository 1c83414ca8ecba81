"""Supply of workers, on this machine or in a cluster: the words that both have."""

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple, Protocol

from msx_core.config import ModelConfig
from msx_frontend.devices.lease import Lease
from msx_frontend.resources.shortage import Shortage
from msx_frontend.resources.starts import Sibling
from msx_frontend.resources.worker_device import WorkerDevice


class UnhealthyDevice(NamedTuple):
    device: int
    """The server's number."""
    id: str
    """The driver's name."""
    health: str
    """The driver's word for it."""


class ClaimEvents(Protocol):
    """The worker that a claim is for. It is called on the loop's thread."""

    number: int

    def claim_changed(self) -> None:
        """`shortage` has become another, or None."""

    def claim_withdrawn(self) -> None:
        """The lease must be given back."""

    def own_memory(self) -> int:
        """Bytes that its group has taken."""


class GroupClaim(Protocol):
    """The resources of one worker group, from before its first start until its last process is gone."""

    def attach(self, worker: ClaimEvents) -> None:
        """Give it to this worker, and tell that one of changes from now on."""

    @property
    def lease(self) -> Lease | None: ...

    @property
    def shortage(self) -> Shortage | None: ...

    @property
    def revoked(self) -> str:
        """Why the lease must be given back, once the group has ended: `renew` does it."""

    @property
    def phase(self) -> str:
        """Line that it stands in; "" while it stands in none, or lacks something."""

    def devices(self, pids: Collection[int]) -> Sequence[WorkerDevice]:
        """The devices of its `lease` that this server reads; `pids` are the group's processes."""

    async def satisfied(self) -> None:
        """Returns when it has its `lease`."""

    async def turn(self) -> None:
        """Returns when the group may start. Call `started` when it has, or does not want to any more."""

    def started(self) -> None:
        """The group has started or will not: others may. May be called again."""

    def release(self) -> None:
        """The group's last process is gone, and no other starts. May be called again."""

    def renew(self) -> None:
        """A lease that was revoked is given back, and another one asked for. The group has no process now."""


class VersionSupply(Protocol):
    """Resources that the workers of one model version may have."""

    def claim(self, sibling: Sibling) -> GroupClaim:
        """A claim for one more worker group. Raises DeviceError when it could never be satisfied."""

    def check(self, workers: int) -> None:
        """Raises DeviceError or TooManyProcessesError when so many workers could never start, also without others."""

    def forget(self) -> None:
        """Forget an unregistered model: its placement starts anew when it is registered again."""

    @property
    def capacity(self) -> int | None:
        """How many workers there may be if no other model had devices; None: any number."""

    def room(self, since: float) -> int | None:
        """How many more workers its load may add now; None: as many as there may be. A reading of the devices counts
        for another worker on a device of one that it has when it is later than `since` (`time.monotonic`)."""

    @property
    def has_devices(self) -> bool: ...

    @property
    def device_type(self) -> str:
        """Kind of device that it runs on: the accelerator's kind, or "cpu"."""

    @property
    def unhealthy_devices(self) -> Sequence[UnhealthyDevice]:
        """The unhealthy ones of the devices that it may have."""

    @property
    def default_workers(self) -> int:
        """How many workers it starts with, where nobody says."""

    @property
    def default_most(self) -> int:
        """How many its load may make of them, where nobody says."""


Supply = Callable[[str, ModelConfig], VersionSupply]
"""Supply of the model version that the key names."""
