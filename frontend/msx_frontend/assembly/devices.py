"""The devices of one server: found once, leased to worker groups."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msx_frontend.config import ServerConfig
from msx_frontend.devices.accelerator import Accelerator, Device, DeviceStatus, Links, figures
from msx_frontend.devices.choose import ChosenDevices, choose_accelerator
from msx_frontend.devices.kept_leases import KeptLease
from msx_frontend.devices.none import NoAccelerator
from msx_frontend.devices.pool import DevicePool
from msx_frontend.devices.settings import DeviceSettings, NoDevicesError
from msx_frontend.devices.sharing_log import SharingLog
from msx_frontend.metrics.observer import ObservedDevice
from msx_frontend.models.device_usage import server_device
from msx_frontend.resources import limits
from msx_frontend.resources.claims import Resources
from msx_frontend.resources.device_reading import DeviceReading
from msx_frontend.resources.device_watch import DeviceWatch, read_devices
from msx_frontend.resources.processes import Processes
from msx_frontend.resources.starts import Starts

log = logging.getLogger("msx.devices")


class FoundDevices:
    """Devices as a start finds them, which takes seconds where a tool is asked."""

    def __init__(self, accelerator: Accelerator, devices: Sequence[Device], links: Links) -> None:
        self.accelerator, self.devices, self.links = accelerator, devices, links
        self.reading: DeviceReading | None = None
        """State of all devices; None where they are not watched, or could not be read."""

    @classmethod
    async def look(cls, config: ServerConfig) -> FoundDevices:
        """Raises AcceleratorError."""
        chosen = await asyncio.to_thread(choose_devices, config, os.environ)
        for remark in (*(problem.sentence for problem in chosen.problems), *chosen.remarks):
            log.warning("%s", remark)
        found = cls(chosen.accelerator, chosen.devices, await asyncio.to_thread(chosen.accelerator.links))
        if config.device_check_interval and found.devices:
            found.reading = await read_devices(found.accelerator)
        return found

    async def close(self) -> None:
        await asyncio.to_thread(self.accelerator.close)


class ServerDevices:
    def __init__(self, config: ServerConfig, found: FoundDevices, kept: Iterable[KeptLease] = ()) -> None:
        """`kept`: leases of groups that a frontend before this one has started."""
        self._accelerator = accelerator = found.accelerator
        self._devices = found.devices
        self._sharing_log = SharingLog(accelerator.status)
        pool = DevicePool(
            accelerator,
            found.devices,
            found.links,
            exclusive_groups=config.exclusive_group_devices,
            shared=self._sharing_log.add,
            kept=kept,
        )
        processes = Processes(limits.worker_processes(config, pool.count))
        self.resources = Resources(pool, processes, Starts(limits.parallel_starts(config)))
        self._watch = DeviceWatch(accelerator, self.resources, config.device_check_interval)
        self._watch.start(found.reading)
        self._closed = False

    def figures(self) -> Iterable[tuple[int, DeviceStatus]]:
        """The figures of each device, by the server's number, as the watch has read them last, or as they are now
        where it does not look; none after the end. Blocks."""
        if self._closed:
            return ()
        statuses = self.resources.reading.statuses if self._watch.looks else self._accelerator.status()
        return figures(statuses, self._devices)

    def observed(self) -> Iterable[ObservedDevice]:
        """Each device as it was read last, for the metrics."""
        for number, device in enumerate(self._devices):
            status = self._read(device) or DeviceStatus()
            healthy = number not in self.unhealthy()
            yield ObservedDevice(number, healthy, status.temperature, status.memory_errors)

    def unhealthy(self) -> Mapping[int, str]:
        """The health of each unhealthy device, by number."""
        return self.resources.devices.health.unhealthy

    def report(self) -> list[dict[str, Any]]:
        """Each device as it was read last, and the models that hold it."""
        pool = self.resources.devices
        return [
            {
                **server_device(number, device, self._read(device)),
                "healthy": number not in self.unhealthy(),
                "holders": pool.holders(number),
            }
            for number, device in enumerate(self._devices)
        ]

    def _read(self, device: Device) -> DeviceStatus | None:
        return self.resources.reading.statuses.get(device.id)

    async def close(self) -> None:
        self._closed = True
        await self._watch.close()
        await self._sharing_log.close()


def choose_devices(config: ServerConfig, env: Mapping[str, str]) -> ChosenDevices:
    """See `choose_accelerator`. In a cluster nothing needs to be here: Ray knows the devices of the nodes."""
    if config.cluster_address is None:
        return choose_accelerator(
            DeviceSettings(config.accelerator, config.number_of_npu, config.simulate_devices), env
        )
    try:
        return choose_accelerator(DeviceSettings(config.accelerator), env)
    except NoDevicesError:
        return ChosenDevices(NoAccelerator(), ())
