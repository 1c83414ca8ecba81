"""The parts of a model version without stages."""

from msx_frontend.models.versions.figures import VersionFigures
from msx_frontend.models.versions.group_recipe import GroupRecipe
from msx_frontend.models.versions.queue import VersionQueue
from msx_frontend.models.versions.supervisor import Supervisor, VersionEvents, VersionResources
from msx_frontend.models.versions.workers import VersionWorkers


class PlainParts:
    def __init__(self, recipe: GroupRecipe, given: VersionResources, events: VersionEvents | None = None) -> None:
        self.source, self.environment = recipe.source, recipe.environment
        self.resources, self.metrics = resources, metrics = given.supply, given.metrics
        self.supervisor = supervisor = Supervisor(recipe, given, events)
        self.status, self.schema, self.sleep = supervisor.status, supervisor.schema, supervisor.sleep
        self.queue = VersionQueue(supervisor, self.source, metrics)
        self.workers = VersionWorkers(supervisor, recipe, resources)
        self.figures = VersionFigures(supervisor, self.queue, self.workers, metrics)
        self.stages: dict[str, PlainParts] = {}

    async def drain(self, limit: float) -> None:
        """Requests may run for `limit` seconds; returns when no process is left."""
        self.supervisor.autoscaler.close()
        await self.queue.drain(limit)
        await self.supervisor.replicas.remove_all(limit)

    def keep_workers(self) -> None:
        """See `ModelVersion.keep_workers`."""
        self.supervisor.autoscaler.close()

    def judge(self) -> None:
        self.supervisor.judge()
