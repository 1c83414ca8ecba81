"""The parts of a model version whose stages run in processes of their own."""

from collections.abc import Callable, Mapping

from msx_core.config import Pipeline
from msx_core.generation import Capabilities
from msx_core.kserve.types import Signature
from msx_core.methods import MethodInfo, Methods
from msx_frontend.metrics import ModelMetrics
from msx_frontend.models.versions.figures import StagedFigures
from msx_frontend.models.versions.group_recipe import GroupRecipe
from msx_frontend.models.versions.plain_parts import PlainParts
from msx_frontend.models.versions.schema import VersionSchema
from msx_frontend.models.versions.sleep import VersionSleep
from msx_frontend.models.versions.staged_queue import StagedQueue
from msx_frontend.models.versions.staged_status import StagedStatus
from msx_frontend.models.versions.staged_workers import StagedWorkers
from msx_frontend.models.versions.supervisor import VersionEvents
from msx_frontend.resources.supply import VersionSupply

MakeStage = Callable[[str, VersionEvents], PlainParts]
"""Makes the stage of this name, whose owner hears of it."""


class StagedParts:
    """There are no workers but those of the stages, each with its queue, workers and metrics, which nobody else gives
    jobs to. Requests are counted here and by each stage."""

    def __init__(
        self,
        recipe: GroupRecipe,
        resources: VersionSupply,
        metrics: ModelMetrics,
        pipeline: Pipeline,
        make_stage: MakeStage,
    ) -> None:
        self.source, self.environment = recipe.source, recipe.environment
        self.resources, self.metrics, self._pipeline = resources, metrics, pipeline
        labels = self.source.name, self.source.version
        self.stages = stages = {name: make_stage(name, self) for name in pipeline.stages}
        workers = {name: stage.workers for name, stage in stages.items()}
        self.workers, self.status = StagedWorkers([*workers.values()]), StagedStatus(*labels, workers)
        self.queue = StagedQueue(self.source, metrics, self.status, pipeline, stages)
        figures = [stage.figures for stage in stages.values()]
        self.figures = StagedFigures(labels, metrics, self.status, self.queue.counts, figures)
        self.schema = VersionSchema(self.source.name)
        self.schema.capabilities, self.schema.signature = Capabilities(), Signature()
        self.schema.methods = described(pipeline, stages)
        self.sleep = VersionSleep(self.source.name, list)

    def judged(self) -> None:
        """The status of a stage may have changed."""
        if not self.status.leaving:
            self.schema.methods = described(self._pipeline, self.stages)
            self.status.judge()
        self.status.changed.set()

    async def drain(self, limit: float) -> None:
        """Requests may run for `limit` seconds."""
        await self.queue.drain(limit)

    def keep_workers(self) -> None:
        """They are those of the stages."""

    def judge(self) -> None:
        self.judged()


def described(pipeline: Pipeline, stages: Mapping[str, PlainParts]) -> Methods:
    """The routes by name; "" is the first one, if anything is known of its bodies: the first stage reads them, and the
    last one writes them."""
    found = []
    for at, (name, route) in enumerate(pipeline.routes.items()):
        request = _own(stages[route.first]).request_schema
        reply = _own(stages[route.last]).reply_schema
        if at == 0 and (request or reply):
            found.append(MethodInfo(name="", request_schema=request, reply_schema=reply))
        if name and not name.startswith("/"):
            found.append(MethodInfo(name=name, request_schema=request, reply_schema=reply))
    return tuple(found)


def _own(stage: PlainParts) -> MethodInfo:
    """Method info of its `handle`, with what is known of its bodies."""
    return next((one for one in stage.schema.methods or () if not one.name), MethodInfo(name=""))
