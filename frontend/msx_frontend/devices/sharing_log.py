"""The log lines for devices that are shared: with which models, and how much memory is left there."""

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
        self._pending: list[tuple[Lease, Sequence[Lease]]] = []
        """Leases, with those that are on their devices already."""
        self._task: asyncio.Task[None] | None = None

    def add(self, lease: Lease, others: Sequence[Lease]) -> None:
        """`lease` is new on devices of `others`."""
        self._pending.append((lease, others))
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
            for lease, others in pending:
                if lease.terms.most is not None:
                    _say_copies(lease, others, statuses)
                if lease.terms.most is None or any(one.terms.group for one in others):
                    _warn_of_groups(lease, others, statuses)


def _warn_of_groups(lease: Lease, others: Sequence[Lease], statuses: Mapping[str, DeviceStatus]) -> None:
    shared = [
        f"device {number} with {models} ({_memory_left(statuses.get(device.id))})"
        for number, device in zip(lease.numbers, lease.devices, strict=True)
        if (models := _names(number, others))
    ]
    log.warning("%s shares %s", lease.model_key, ", ".join(shared))


def _say_copies(lease: Lease, others: Sequence[Lease], statuses: Mapping[str, DeviceStatus]) -> None:
    """Another worker of the model on its only device: a warning where less is left than a worker there has."""
    (number,), (device,) = lease.numbers, lease.devices
    copies = sum(one.model_key == lease.model_key for one in others)
    if not copies:
        return
    status = statuses.get(device.id)
    text, words = "%s has %d workers on device %d, each with a copy of the model (%s)", _memory_left(status)
    short = _is_short(status, len(others))
    advice = ", less than a worker there has: lower workersPerDevice if it does not load" if short else ""
    log.log(logging.WARNING if short else logging.INFO, text + advice, lease.model_key, copies + 1, number, words)


def _is_short(status: DeviceStatus | None, workers: int) -> bool:
    if status is None or status.memory_total is None or status.memory_used is None:
        return False
    return (status.memory_total - status.memory_used) * workers < status.memory_used


def _names(number: int, leases: Sequence[Lease]) -> str:
    return " and ".join(dict.fromkeys(lease.model_key for lease in leases if number in lease.numbers))


def _memory_left(status: DeviceStatus | None) -> str:
    if status is None or status.memory_total is None or status.memory_used is None:
        return "how much memory is left on it is not known"
    return f"{status.memory_total - status.memory_used} of {status.memory_total} MB of its memory are left"
