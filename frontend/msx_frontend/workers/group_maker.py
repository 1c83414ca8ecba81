"""Recipe of a model version, from which a replica makes its groups."""

from typing import Protocol

from msx_frontend.devices.lease import Lease
from msx_frontend.workers.launcher import GroupSpec, Launcher


class GroupMaker(Protocol):
    """Recipe from which a replica makes its groups."""

    @property
    def launcher(self) -> Launcher: ...

    async def prepare(self) -> None:
        """Awaited before each generation. Raises ServiceError, RequirementsFailed among them."""

    def spec(self, lease: Lease, worker: int, generation: int) -> GroupSpec:
        """Called after `prepare`."""

    def runs(self, lease: Lease, worker: int, generation: int) -> bool:
        """Such a group runs already, and its launch takes it over. Called after `prepare`."""
