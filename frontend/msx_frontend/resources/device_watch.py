"""Reads the health of the devices at an interval: workers leave unhealthy devices, waiting ones get healthy devices."""

import asyncio
import logging
import time

from msx_frontend.devices.accelerator import Accelerator
from msx_frontend.resources.claims import Resources
from msx_frontend.resources.device_reading import DeviceReading

log = logging.getLogger("msx.devices")


class DeviceWatch:
    """`interval`: seconds from one reading to the next (`device_check_interval`); 0: none at all."""

    def __init__(self, accelerator: Accelerator, resources: Resources, interval: float) -> None:
        self._accelerator, self._resources, self._interval = accelerator, resources, interval
        self._task: asyncio.Task[None] | None = None

    @property
    def looks(self) -> bool:
        return self._task is not None

    async def start(self) -> None:
        """Returns after the first reading: no worker starts on a device that is unhealthy by then."""
        if self._interval and self._resources.devices.count:
            await self.look()
            self._task = asyncio.create_task(self._run(), name="device-watch")

    async def look(self) -> None:
        """One reading, on a thread. What goes wrong there says nothing about the devices."""
        try:
            reading = await asyncio.to_thread(self._read)
        except Exception:
            log.exception("the state of the devices could not be read")
        else:
            self._resources.devices_read(reading)

    def _read(self) -> DeviceReading:
        at = time.monotonic()
        return DeviceReading(self._accelerator.status(), at)

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(self._interval)
            await self.look()
