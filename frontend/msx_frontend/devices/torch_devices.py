"""Devices of a worker as its torch will see them."""

from msx_core.torch_devices import TorchDevices
from msx_frontend.devices import choose
from msx_frontend.devices.lease import Lease


def torch_devices(lease: Lease, rank: int) -> list[TorchDevices]:
    """Each kind that torch computes on, also where the rank has none of it: torch may see some all the same."""
    count = len(lease.devices) if lease.placement is None else len(lease.placement.place_of(rank).devices)
    simulated = any(device.simulated for device in lease.devices)
    return [
        TorchDevices(kind.torch, kind.title, kind.visible, count if kind.torch == lease.torch else 0, simulated)
        for kind in choose.KNOWN
        if kind.torch
    ]
