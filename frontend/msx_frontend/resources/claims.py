"""The server's resources: which worker groups hold them, and which wait for them, in the order of their claims."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from msx_core.config import ModelConfig
from msx_frontend.devices.errors import DevicesHeldError, PortsHeldError
from msx_frontend.devices.lease import Lease
from msx_frontend.devices.pool import DevicePool
from msx_frontend.resources.claim_state import ClaimState
from msx_frontend.resources.device_reading import DeviceReading
from msx_frontend.resources.processes import Processes
from msx_frontend.resources.shortage import Shortage
from msx_frontend.resources.starts import Sibling, Start, Starts
from msx_frontend.resources.worker_device import WorkerDevice


class Resources:
    """Resources of worker groups. A group's go back to each waiting claim in turn, if they are enough."""

    def __init__(self, devices: DevicePool, processes: Processes, starts: Starts) -> None:
        self.devices, self.processes, self.starts = devices, processes, starts
        self.reading = DeviceReading()
        """The last one of the devices."""
        self._waiting: list[Claim] = []
        self._granted: list[Claim] = []

    def claim(self, model_key: str, config: ModelConfig, sibling: Sibling = lambda: None) -> Claim:
        """A claim for one worker group. Raises DeviceError when it could never be satisfied."""
        claim = Claim(self, model_key, config, sibling)
        if not self._satisfy(claim):
            self._waiting.append(claim)
        return claim

    def release(self, claim: Claim) -> None:
        """The claim holds nothing and waits for nothing any more. May be called again."""
        if claim in self._waiting:
            self._waiting.remove(claim)
        if claim.lease is not None:
            self._granted.remove(claim)
            self.devices.release(claim.lease)
            self.processes.give_back(claim.ranks)
            claim.lease = None
            self._serve()

    def renew(self, claim: Claim) -> None:
        """The claim gives back its lease and is the first to get another: the waiting ones were made later."""
        self._waiting.insert(0, claim)
        lease, claim.lease = claim.lease, None
        if lease is not None:
            self._granted.remove(claim)
            self.devices.release(lease)
            self.processes.give_back(claim.ranks)
        self._serve()

    def devices_read(self, reading: DeviceReading) -> None:
        """Handles one reading of the devices: claims to devices that have become unhealthy are revoked."""
        self.reading = reading
        self.devices.load.read(reading.statuses, reading.at)
        for number in self.devices.health.read(reading.statuses):
            word = self.devices.health.unhealthy[number]
            for claim in list(self._granted):
                if claim.lease is not None and number in claim.lease.numbers:
                    claim.revoke(f"device {number} is unhealthy ({word})")
        self._serve()

    def _serve(self) -> None:
        self._waiting = [claim for claim in self._waiting if not self._satisfy(claim)]

    def _satisfy(self, claim: Claim) -> bool:
        shortage = self.processes.shortage(claim.model_key, claim.ranks)
        if shortage is None:
            try:
                lease = self.devices.lease(claim.model_key, claim.config)
            except DevicesHeldError as error:
                shortage = Shortage("devices", str(error))
            except PortsHeldError as error:
                shortage = Shortage("ports", str(error))
            else:
                self.processes.take(claim.ranks)
                self._granted.append(claim)
                claim.grant(lease)
        claim.lacks(shortage)
        return shortage is None


class Claim(ClaimState):
    """The resources of one worker group, from before its first start until its last process is gone."""

    def __init__(self, resources: Resources, model_key: str, config: ModelConfig, sibling: Sibling) -> None:
        super().__init__()
        self._resources, self.model_key, self.config, self._sibling = resources, model_key, config, sibling
        self.ranks = config.layout.ranks
        self._start: Start | None = None

    async def turn(self) -> None:
        """Returns when the group may start. Call `started` when it has, or does not want to any more."""
        self._start = Start(self.model_key, self._sibling, self.taken, self.lacks)
        self._resources.starts.ask(self._start)
        await self._start.turn.wait()

    def started(self) -> None:
        """The group has started or will not: others may. May be called again."""
        if self._start is not None:
            self._resources.starts.end(self._start)
            self._start = None

    @property
    def phase(self) -> str:
        """Line that it stands in; "" while it stands in none, or lacks something."""
        if self._start is None or self._start.turn.is_set() or self.shortage is not None:
            return ""
        return f"in line to start: {self._resources.starts.limit} do so at once (parallel_starts)"

    def release(self) -> None:
        """The group's last process is gone, and no other starts. May be called again."""
        self.started()
        self._resources.release(self)

    def devices(self, pids: Collection[int]) -> Sequence[WorkerDevice]:
        lease, reading = self.lease or Lease(self.model_key), self._resources.reading
        return [
            WorkerDevice(number, device, reading.statuses.get(device.id), reading.memory(device.id, pids))
            for number, device in zip(lease.numbers, lease.devices, strict=True)
        ]

    def grant(self, lease: Lease) -> None:
        self.lease = lease
        self._satisfied.set()

    def renew(self) -> None:
        """A lease that was revoked is given back, and another one asked for. The group has no process now."""
        if self.revoked:
            self.revoked = ""
            self._satisfied.clear()
            self._resources.renew(self)

    def lacks(self, shortage: Shortage | None) -> None:
        before, self.shortage = self.shortage, shortage
        if _topic(before) != _topic(shortage):
            self.changed()


def _topic(shortage: Shortage | None) -> tuple[str, str] | None:
    """Part of a shortage whose change counts: figures of the memory change all the time."""
    return shortage and (shortage.resource, "" if shortage.resource == "memory" else shortage.reason)
