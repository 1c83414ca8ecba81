"""The devices of one server: found once, leased to worker groups."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from msx_frontend.config import ServerConfig
from msx_frontend.devices.accelerator import Accelerator, Device, DeviceStatus, Links, figures
from msx_frontend.devices.choose import choose_accelerator
from msx_frontend.devices.pool import DevicePool
from msx_frontend.devices.sharing_log import SharingLog
from msx_frontend.resources import limits
from msx_frontend.resources.claims import Resources
from msx_frontend.resources.device_watch import DeviceWatch
from msx_frontend.resources.processes import Processes
from msx_frontend.resources.starts import Starts


class ServerDevices:
    def __init__(self, config: ServerConfig, accelerator: Accelerator, devices: Sequence[Device], links: Links) -> None:
        self._accelerator = accelerator
        self._devices = devices
        self._sharing_log = SharingLog(accelerator.status)
        pool = DevicePool(
            accelerator, devices, links, exclusive_groups=config.exclusive_group_devices, shared=self._sharing_log.add
        )
        processes = Processes(limits.worker_processes(config, pool.count))
        self.resources = Resources(pool, processes, Starts(limits.parallel_starts(config)))
        self._watch = DeviceWatch(accelerator, self.resources, config.device_check_interval)

    @classmethod
    async def find(cls, config: ServerConfig) -> ServerDevices:
        accelerator, devices = await asyncio.to_thread(choose_accelerator, config.number_of_npu, os.environ)
        found = cls(config, accelerator, devices, await asyncio.to_thread(accelerator.links))
        await found._watch.start()
        return found

    def figures(self) -> Iterable[tuple[int, DeviceStatus]]:
        """The figures of each device, by the server's number. Blocks."""
        return figures(self._accelerator, self._devices)

    def healthy(self) -> Iterable[tuple[int, bool]]:
        """The number of each device, and whether models may run on it."""
        return ((number, number not in self.unhealthy()) for number in range(len(self._devices)))

    def unhealthy(self) -> Mapping[int, str]:
        """The health of each unhealthy device, by number."""
        return self.resources.devices.health.unhealthy

    def report(self) -> list[dict[str, Any]]:
        """Each device as it was read last, and the models that hold it."""
        pool = self.resources.devices
        return [
            {
                "number": number,
                "id": device.id,
                "name": device.name,
                "simulated": device.simulated,
                **asdict(self._watch.last.get(device.id, DeviceStatus())),
                "healthy": number not in self.unhealthy(),
                "holders": pool.holders(number),
            }
            for number, device in enumerate(self._devices)
        ]

    async def close(self) -> None:
        await self._watch.close()
        await self._sharing_log.close()
