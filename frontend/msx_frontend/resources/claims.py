"""The server's resources: who holds some of them, and who waits, in the order of asking."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from msx_frontend.devices.lease import Lease
from msx_frontend.devices.pool import DevicePool
from msx_frontend.devices.refusals import DevicesHeldError
from msx_frontend.resources.shortage import Shortage
from msx_sdk.config import ModelConfig


class Resources:
    """What is given back goes to those who wait: to each in turn for whom it is enough."""

    def __init__(self, devices: DevicePool) -> None:
        self.devices = devices
        self._waiting: list[Claim] = []

    def claim(self, model_key: str, config: ModelConfig) -> Claim:
        """For one worker group. Raises DeviceError when it could never be satisfied."""
        claim = Claim(self, model_key, config)
        if not self._satisfy(claim):
            self._waiting.append(claim)
        return claim

    def release(self, claim: Claim) -> None:
        """It holds and waits for nothing any more. May be called again."""
        if claim in self._waiting:
            self._waiting.remove(claim)
        if claim.lease is not None:
            self.devices.release(claim.lease)
            claim.lease = None
            self._waiting = [other for other in self._waiting if not self._satisfy(other)]

    def _satisfy(self, claim: Claim) -> bool:
        try:
            claim.given(self.devices.lease(claim.model_key, claim.config))
        except DevicesHeldError as error:
            claim.lacks(Shortage("devices", str(error)))
        return claim.lease is not None


class Claim:
    """One worker group's, from before its first start to after its last process.

    `changed` is called when `shortage` has become another, or None.
    """

    def __init__(self, resources: Resources, model_key: str, config: ModelConfig) -> None:
        self._resources, self.model_key, self.config = resources, model_key, config
        self.lease: Lease | None = None
        self.shortage: Shortage | None = None
        self.changed: Callable[[], None] | None = None
        self._satisfied = asyncio.Event()

    async def satisfied(self) -> None:
        """Until it has its `lease`."""
        await self._satisfied.wait()

    def release(self) -> None:
        """The group's last process is gone, and no other starts. May be called again."""
        self._resources.release(self)

    def given(self, lease: Lease) -> None:
        self.lease = lease
        self._satisfied.set()
        self.lacks(None)

    def lacks(self, shortage: Shortage | None) -> None:
        if shortage != self.shortage:
            self.shortage = shortage
            if self.changed is not None:
                self.changed()
