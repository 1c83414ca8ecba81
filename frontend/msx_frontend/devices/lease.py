"""The devices of one worker group."""

from __future__ import annotations

from dataclasses import dataclass

from msx_frontend.devices.terms import SHARED, Terms


@dataclass(frozen=True, eq=False)
class Lease:
    """`devices` are numbers in the server's list, in its order; none for a worker on the CPU."""

    model_key: str
    devices: tuple[int, ...] = ()
    visible_devices: str | None = None
    terms: Terms = SHARED
    port_block: int | None = None
    """Which of the blocks of HCCL's ports is its own; None where no other group can be on its devices."""

    @property
    def device_id(self) -> int | None:
        """The first device, TorchServe's `gpu_id`."""
        return self.devices[0] if self.devices else None
