"""The warning that worker groups share devices: with which models, and how much memory is left there."""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence

from msx_frontend.devices.accelerator import DeviceStatus
from msx_frontend.devices.lease import Lease

log = logging.getLogger("msx.devices")


class SharingLog:
    """Reads the memory on a thread, once for all the leases of a moment. `status` is the accelerator's."""

    def __init__(self, status: Callable[[], Mapping[str, DeviceStatus]]) -> None:
        self._status = status
        self._pending: list[tuple[Lease, list[str]]] = []
        """Leases, with the names of the models on each of their devices."""
        self._task: asyncio.Task[None] | None = None

    def add(self, lease: Lease, others: Sequence[Lease]) -> None:
        """`lease` is new on devices of `others`."""
        self._pending.append((lease, [_names(number, others) for number in lease.numbers]))
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._warn(), name="device-memory")

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _warn(self) -> None:
        while self._pending:
            pending, self._pending = self._pending, []
            statuses = await asyncio.to_thread(self._status)
            for lease, names in pending:
                shared = [
                    f"device {number} with {models} ({_memory_left(statuses.get(device.id))})"
                    for number, device, models in zip(lease.numbers, lease.devices, names, strict=True)
                    if models
                ]
                log.warning("%s shares %s", lease.model_key, ", ".join(shared))


def _names(number: int, leases: Sequence[Lease]) -> str:
    return " and ".join(dict.fromkeys(lease.model_key for lease in leases if number in lease.numbers))


def _memory_left(status: DeviceStatus | None) -> str:
    if status is None or status.memory_total is None or status.memory_used is None:
        return "how much memory is left on it is not known"
    return f"{status.memory_total - status.memory_used} of {status.memory_total} MB of its memory are left"
