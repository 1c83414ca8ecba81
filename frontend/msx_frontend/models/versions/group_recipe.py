"""How the worker groups of one model version are made."""

from __future__ import annotations

from dataclasses import dataclass, replace

from msx_frontend.archives.contents import ArchiveContents
from msx_frontend.devices.lease import Lease
from msx_frontend.environments.environments import Environment
from msx_frontend.models.versions.model_source import ModelSource
from msx_frontend.models.versions.spawn import Spawner
from msx_frontend.workers.launcher import GroupSpec, Launcher


@dataclass(frozen=True)
class GroupRecipe:
    """A replica makes each of its groups with it (`GroupMaker`)."""

    source: ModelSource
    environment: Environment
    contents: ArchiveContents
    spawner: Spawner
    place: int = 0

    @property
    def launcher(self) -> Launcher:
        return self.spawner.launcher

    async def prepare(self) -> None:
        """Check the unpacked archive, the rights of the worker's user and the installed requirements. Raises
        ServiceError."""
        await self.contents.intact(self.source.digest)
        await self.spawner.prepare(self.source)
        await self.environment.ready()

    def spec(self, lease: Lease, worker: int, generation: int) -> GroupSpec:
        return self.spawner.spec(self.source, lease, worker, generation, self.environment.place, at=self.place)

    def runs(self, lease: Lease, worker: int, generation: int) -> bool:
        return self.spawner.runs(self.spec(lease, worker, generation))

    def at(self, place: int) -> GroupRecipe:
        """Recipe of the worker at this place of the version, from 0."""
        return replace(self, place=place)
