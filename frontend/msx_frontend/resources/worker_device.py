"""A device of a worker, as it was read last."""

from typing import NamedTuple

from msx_frontend.devices.accelerator import Device, DeviceStatus


class WorkerDevice(NamedTuple):
    number: int
    """The server's number of it."""
    device: Device
    status: DeviceStatus | None
    """None where it has not been read."""
    memory: int | None
    """Bytes that the worker's processes have there; None where the driver does not tell."""
