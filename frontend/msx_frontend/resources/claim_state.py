"""State common to all claims, on this machine and in a cluster: their words for the replica (`GroupClaim`)."""

import asyncio
from collections.abc import Collection, Sequence

from msx_frontend.devices.lease import Lease
from msx_frontend.resources.shortage import Shortage
from msx_frontend.resources.supply import ClaimEvents
from msx_frontend.resources.worker_device import WorkerDevice


class ClaimState:
    """Tells nobody until a worker is attached."""

    def __init__(self) -> None:
        self.lease: Lease | None = None
        self.shortage: Shortage | None = None
        self.revoked = ""
        """Why the lease must be given back, once the group has ended: `renew` does it."""
        self.worker = 0
        self._events: ClaimEvents | None = None
        self._satisfied = asyncio.Event()

    def attach(self, worker: ClaimEvents) -> None:
        self._events, self.worker = worker, worker.number

    def taken(self) -> int:
        """Bytes of its worker."""
        return self._events.own_memory() if self._events is not None else 0

    def devices(self, pids: Collection[int]) -> Sequence[WorkerDevice]:
        """None: nobody reads the devices of other machines."""
        return ()

    def changed(self) -> None:
        if self._events is not None:
            self._events.claim_changed()

    async def satisfied(self) -> None:
        """Returns when it has its `lease`."""
        await self._satisfied.wait()

    def revoke(self, reason: str) -> None:
        """The group must not run on what it has any longer."""
        if not self.revoked:
            self.revoked = reason
            if self._events is not None:
                self._events.claim_withdrawn()
