"""One reading of all devices, and which processes have memory on them."""

from collections.abc import Collection, Mapping
from types import MappingProxyType

import psutil

from msx_frontend.devices.accelerator import DeviceStatus

MB = 1 << 20


class DeviceReading:
    def __init__(self, statuses: Mapping[str, DeviceStatus] = MappingProxyType({}), at: float = 0.0) -> None:
        """`statuses`, by device id, were read just now; `at` is the instant when that began (`time.monotonic`). Blocks
        for a moment where they have processes."""
        self.statuses, self.at = statuses, at
        pids = {pid for status in statuses.values() for pid in status.processes or ()}
        self._ancestries = {pid: _ancestry(pid) for pid in pids}

    def memory(self, device: str, pids: Collection[int]) -> int | None:
        """Bytes that these processes, and those that they have started, have on a device. None where it is not known
        which processes are there."""
        status = self.statuses.get(device)
        if status is None or status.processes is None:
            return None
        own = (size for pid, size in status.processes.items() if not self._ancestries[pid].isdisjoint(pids))
        return sum(own) * MB


def _ancestry(pid: int) -> frozenset[int]:
    """The process and those that it descends from, as far as they live."""
    try:
        return frozenset((pid, *(parent.pid for parent in psutil.Process(pid).parents())))
    except psutil.Error:  # it has ended
        return frozenset((pid,))
