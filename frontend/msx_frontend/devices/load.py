"""How busy the devices are, by the last reading: whether one more worker of a model could use a device."""

from collections.abc import Mapping, Sequence
from math import inf

from msx_frontend.devices.accelerator import Device, DeviceStatus

BUSY = 80
"""Percent of utilisation from which on another worker of the same model would only wait for the device."""


class DeviceLoad:
    """Devices by the server's number; instants are those of `time.monotonic`."""

    def __init__(self, devices: Sequence[Device]) -> None:
        self._devices = devices
        self._read_at = -inf
        self._percent: dict[int, int] = {}

    def read(self, statuses: Mapping[str, DeviceStatus], at: float) -> None:
        """Take a reading that began at this instant. Devices that it does not tell of are not known any more."""
        self._read_at = at
        found = ((number, statuses.get(device.id)) for number, device in enumerate(self._devices))
        self._percent = {
            number: status.utilisation for number, status in found if status and status.utilisation is not None
        }

    def known(self, device: int) -> bool:
        return device in self._percent

    def busy(self, device: int) -> bool:
        return self._percent.get(device, 0) >= BUSY

    def spare(self, device: int, since: float) -> bool:
        """Whether a reading after `since` found the device below BUSY."""
        return self._read_at > since and self.known(device) and not self.busy(device)
