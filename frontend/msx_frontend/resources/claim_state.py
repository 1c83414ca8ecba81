"""What all claims have in common, on this machine and in a cluster: their words for the replica (`GroupClaim`)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from msx_frontend.devices.lease import Lease
from msx_frontend.resources.shortage import Shortage


class ClaimState:
    """`changed` is called when `shortage` has become another, or None, `withdrawn` when the lease must be given back;
    `taken` gives the memory that the group has."""

    def __init__(self) -> None:
        self.lease: Lease | None = None
        self.shortage: Shortage | None = None
        self.revoked = ""
        """Why the lease must be given back, once the group has ended: `renew` does it."""
        self.worker = 0
        self.changed: Callable[[], None] = lambda: None
        self.withdrawn: Callable[[], None] = lambda: None
        self.taken: Callable[[], int] = lambda: 0
        self._satisfied = asyncio.Event()

    async def satisfied(self) -> None:
        """Returns when it has its `lease`."""
        await self._satisfied.wait()

    def revoke(self, reason: str) -> None:
        """The group must not run on what it has any longer."""
        if not self.revoked:
            self.revoked = reason
            self.withdrawn()
