"""Which devices are unhealthy, judged by several readings in a row: one bad reading ends no worker."""

import logging
from collections import Counter
from collections.abc import Mapping, Sequence

from msx_frontend.devices.accelerator import Device, DeviceStatus

log = logging.getLogger("msx.devices")

READINGS = 2
"""So many readings in a row change the verdict. At the start one does, because no worker has the device yet."""

MISSING = "missing"
"""The health of a device that was listed before and is not any more."""


class DeviceHealth:
    """Devices are healthy until readings say otherwise. A reading that does not tell counts neither way."""

    def __init__(self, devices: Sequence[Device]) -> None:
        self._devices = devices
        self.unhealthy: dict[int, str] = {}
        """The driver's word for each unhealthy device, by the server's number."""
        self._listed: set[int] = set()
        self._against: Counter[int] = Counter()
        """How many readings in a row contradict the verdict, by device."""
        self._readings = 1

    def read(self, statuses: Mapping[str, DeviceStatus]) -> list[int]:
        """One reading of all devices; empty where the tool failed. Returns those that have become unhealthy."""
        if not statuses:
            return []
        changed = [number for number, device in enumerate(self._devices) if self._changes(number, device, statuses)]
        self._readings = READINGS
        return [number for number in changed if number in self.unhealthy]

    def _changes(self, number: int, device: Device, statuses: Mapping[str, DeviceStatus]) -> bool:
        """Counts this reading of one device, and returns whether it changes the verdict."""
        healthy, word = self._judged(number, statuses.get(device.id))
        if healthy is None:
            return False
        if healthy == (number not in self.unhealthy):
            self._against[number] = 0
            return False
        self._against[number] += 1
        if self._against[number] < self._readings:
            return False
        self._against[number] = 0
        self._change(number, device, "" if healthy else word)
        return True

    def _judged(self, number: int, status: DeviceStatus | None) -> tuple[bool | None, str]:
        if status is None:
            return (False, MISSING) if number in self._listed else (None, "")
        self._listed.add(number)
        return status.healthy, status.health

    def _change(self, number: int, device: Device, word: str) -> None:
        name = f"device {number}" + ("" if device.id == str(number) else f" (id {device.id})")
        if word:
            self.unhealthy[number] = word
            log.error("%s is unhealthy (%s): no worker gets it until it is healthy again", name, word)
        else:
            del self.unhealthy[number]
            log.info("%s is healthy again", name)
