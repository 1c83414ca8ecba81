"""One version of a model whose stages run in processes of their own."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from msx_core.config import Pipeline
from msx_core.generation import Capabilities
from msx_core.methods import METHOD, PACKED_METHOD, MethodInfo, Methods
from msx_core.sequences import SequenceKeys
from msx_frontend.errors import BadRequest, ResourceNotFound, ServiceError, ServiceUnavailable
from msx_frontend.graphs.edges import Bound
from msx_frontend.graphs.execution import Execution
from msx_frontend.graphs.graph import STAGES, Graph
from msx_frontend.graphs.running import Running
from msx_frontend.job import PREDICT, STREAM, Job
from msx_frontend.metrics import ModelMetrics
from msx_frontend.models.group_recipe import GroupRecipe
from msx_frontend.models.model_version import ModelVersion
from msx_frontend.models.observed_stages import ObservedStages
from msx_frontend.models.states import ModelState
from msx_frontend.queueing.instances import InstanceRequest
from msx_frontend.resources.supply import VersionSupply
from msx_frontend.workers.group_end import GroupEnd
from msx_sdk.kserve import Signature


class StagedVersion(ObservedStages, ModelVersion):
    """It has no workers of its own. Its stages are model versions, each with its queue, workers and metrics, that only
    it gives jobs to; its own queue is that of the first stage. Requests are counted by it and by each stage."""

    def __init__(
        self,
        recipe: GroupRecipe,
        resources: VersionSupply,
        metrics: ModelMetrics,
        sequence_keys: SequenceKeys,
        pipeline: Pipeline,
        stages: Mapping[str, ModelVersion],
    ) -> None:
        super().__init__(recipe, resources, metrics, sequence_keys)
        self.stages = dict(stages)
        self.pipeline = pipeline
        self.dispatcher = self.stages[pipeline.main.first].dispatcher
        self._graphs = _graphs(pipeline, self.stages)
        self._main = next(iter(self._graphs.values()))
        self._running = Running()
        self.capabilities, self.signature = Capabilities(), Signature()
        self.methods = self._described()
        self.autoscaler.turn(False)  # its stages have their own
        for stage in self.stages.values():
            stage.judged = self._judge

    # -- requests --

    def submit(self, job: Job) -> None:
        if self._status.leaving:
            raise ServiceUnavailable(f'Model "{self.source.name}" is being unregistered and takes no more requests.')
        graph, kind = self._graph_of(job.kind)
        self._enter(job)
        Execution(graph, job, self._running, kind).begin()

    def submit_instances(self, request: InstanceRequest) -> None:
        raise BadRequest(f'Model "{self.source.name}" has stages and takes no instances: ask for a prediction.')

    def _graph_of(self, kind: str) -> tuple[Graph, str]:
        """The route that a job takes, and the kind of its last stage's job. Raises BadRequest."""
        if kind in (PREDICT, STREAM):
            return self._main, METHOD
        for operation in (METHOD, PACKED_METHOD):
            if kind.startswith(operation):
                return self._named(kind.removeprefix(operation)), operation
        raise BadRequest(
            f'Model "{self.source.name}" has stages and takes predictions alone: its first stage reads the request, '
            "and its last stage writes the answer."
        )

    def _named(self, route: str) -> Graph:
        if not route:
            return self._main
        if (graph := self._graphs.get(route)) is None:
            known = ", ".join(filter(None, self._graphs)) or "none"
            raise ResourceNotFound(f'Model "{self.source.name}" has no route {route[:80]} (its routes: {known}).')
        return graph

    # -- workers --

    async def scale(self, min_workers: int, max_workers: int) -> None:
        """All stages alike."""
        await asyncio.gather(*(stage.scale(min_workers, max_workers) for stage in self.stages.values()))

    async def settled(self) -> GroupEnd | None:
        waiting = {asyncio.ensure_future(stage.settled()) for stage in self.stages.values()}
        try:
            while waiting:
                done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                if end := next((end for task in done if (end := task.result()) is not None), None):
                    return end
            return None
        finally:
            for task in waiting:
                task.cancel()

    async def close(self, drain_limit: float) -> None:
        self._status.move(ModelState.DRAINING)
        await self._running.quiet(drain_limit)
        self.cancel_all(
            ServiceUnavailable(f'Model "{self.source.name}" was unregistered before the request could run.')
        )
        await asyncio.gather(*(stage.close(drain_limit) for stage in self.stages.values()))
        await self.environment.close()
        self.metrics.close()
        self._status.move(ModelState.GONE)

    def cancel_all(self, error: ServiceError) -> None:
        self._running.cancel_all(error)

    # -- what stages tell --

    def _judge(self) -> None:
        """Its state follows from those of its stages."""
        if not self._status.leaving:
            self.methods = self._described()
            self._status.move(self._state_of_stages())
        self._status.changed.set()

    def _described(self) -> Methods:
        """Its routes by name; "" is the first one, if anything is known of its bodies: the first stage reads them, and
        the last one writes them."""
        found = []
        for at, (name, route) in enumerate(self.pipeline.routes.items()):
            request = _own(self.stages[route.first]).request_schema
            reply = _own(self.stages[route.last]).reply_schema
            if at == 0 and (request or reply):
                found.append(MethodInfo(name="", request_schema=request, reply_schema=reply))
            if name and not name.startswith("/"):
                found.append(MethodInfo(name=name, request_schema=request, reply_schema=reply))
        return tuple(found)


def _own(stage: ModelVersion) -> MethodInfo:
    """What is known of the bodies of its `handle`."""
    return next((one for one in stage.methods or () if not one.name), MethodInfo(name=""))


def _graphs(pipeline: Pipeline, stages: Mapping[str, ModelVersion]) -> dict[str, Graph]:
    targets = {name: (stage.source.name, stage) for name, stage in stages.items()}
    bounds = {
        name: Bound(stage.edge_capacity, stage.config.edge_memory << 20) for name, stage in pipeline.stages.items()
    }
    return {name: Graph(route.before, targets, STAGES, bounds=bounds) for name, route in pipeline.routes.items()}
