"""Reads the health of the devices at an interval: workers leave unhealthy devices, waiting ones get healthy devices."""

import asyncio
import logging
import time

from msx_frontend.devices.accelerator import Accelerator
from msx_frontend.resources.claims import Resources
from msx_frontend.resources.device_reading import DeviceReading

log = logging.getLogger("msx.devices")


async def read_devices(accelerator: Accelerator) -> DeviceReading | None:
    """One reading, on a thread. None where something goes wrong there, which says nothing about the devices."""
    at = time.monotonic()
    try:
        return await asyncio.to_thread(lambda: DeviceReading(accelerator.status(), at))
    except Exception:
        log.exception("the state of the devices could not be read")
        return None


class DeviceWatch:
    """`interval`: seconds from one reading to the next (`device_check_interval`); 0: none at all."""

    def __init__(self, accelerator: Accelerator, resources: Resources, interval: float) -> None:
        self._accelerator, self._resources, self._interval = accelerator, resources, interval
        self._task: asyncio.Task[None] | None = None

    @property
    def looks(self) -> bool:
        return self._task is not None

    def start(self, first: DeviceReading | None) -> None:
        """`first`: a reading of the start, so that no worker starts on a device that was unhealthy then."""
        if self._interval and self._resources.devices.count:
            if first is not None:
                self._resources.devices_read(first)
            self._task = asyncio.create_task(self._run(), name="device-watch")

    async def look(self) -> None:
        if (reading := await read_devices(self._accelerator)) is not None:
            self._resources.devices_read(reading)

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(self._interval)
            await self.look()
