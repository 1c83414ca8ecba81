"""The warning that worker groups share devices: with whom, and how much memory is left there."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

from msx_frontend.devices.lease import Lease
from msx_frontend.devices.npus import Npu

log = logging.getLogger("msx.devices")


class SharingLog:
    """Asks for the memory on a thread, once for all the leases of a moment. `look` is `detect_npus`."""

    def __init__(self, look: Callable[[], Sequence[Npu]]) -> None:
        self._look = look
        self._told: list[tuple[Lease, dict[int, str]]] = []
        self._task: asyncio.Task[None] | None = None

    def told(self, lease: Lease, others: Sequence[Lease]) -> None:
        """`lease` is new on devices of `others`."""
        self._told.append((lease, {device: _names(device, others) for device in lease.devices}))
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._warn(), name="device-memory")

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _warn(self) -> None:
        while self._told:
            told, self._told = self._told, []
            memory = [_left(npu) for npu in await asyncio.to_thread(self._look)]
            for lease, names in told:
                shared = [
                    f"device {device} with {of} ({memory[device] if device < len(memory) else _left(None)})"
                    for device, of in names.items()
                    if of
                ]
                log.warning("%s shares %s", lease.model_key, ", ".join(shared))


def _names(device: int, leases: Sequence[Lease]) -> str:
    return " and ".join(dict.fromkeys(lease.model_key for lease in leases if device in lease.devices))


def _left(npu: Npu | None) -> str:
    status = npu.status if npu is not None else None
    if status is None or status.memory_total is None or status.memory_used is None:
        return "how much memory is left on it is not known"
    return f"{status.memory_total - status.memory_used} of {status.memory_total} MB of its memory are left"
