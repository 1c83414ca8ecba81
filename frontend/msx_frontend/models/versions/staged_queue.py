"""Queue of a model version that has stages: each request runs through the graph of its route."""

from collections.abc import Callable, Mapping

from msx_core.config import Pipeline, StageRoute
from msx_core.methods import METHOD, PACKED_METHOD
from msx_core.service_errors import BadRequest, ResourceNotFound, ServiceError
from msx_frontend.declared_jobs import DeclaredJobs, declared_jobs
from msx_frontend.graphs.edges import Bound
from msx_frontend.graphs.execution import Execution
from msx_frontend.graphs.graph import STAGES, Graph, NodeTarget
from msx_frontend.graphs.running import Running
from msx_frontend.job import PREDICT, STREAM, Job
from msx_frontend.metrics import ModelMetrics
from msx_frontend.models.versions.first_load import LoadWait
from msx_frontend.models.versions.model_source import ModelSource
from msx_frontend.models.versions.plain_parts import PlainParts
from msx_frontend.models.versions.queue import Entrance
from msx_frontend.models.versions.request_counts import QueueLoad, RequestCounts
from msx_frontend.models.versions.staged_status import StagedStatus
from msx_frontend.queueing.instances import InstanceRequest


class StagedQueue(Entrance):
    """It holds no requests: those that wait are in the queues of the stages. The first stage's counts as its own."""

    def __init__(
        self,
        source: ModelSource,
        metrics: ModelMetrics,
        status: StagedStatus,
        pipeline: Pipeline,
        stages: Mapping[str, PlainParts],
    ) -> None:
        self._first = stages[pipeline.main.first].queue
        super().__init__(source, metrics, status, self._first.dispatcher)
        self._stages = stages
        self._graphs = _graphs(pipeline, stages, compression=source.config.compression)
        self._main = next(iter(self._graphs.values()))
        self._running = Running()

    def submit(self, job: Job) -> None:
        self._check_stays()
        graph, kind = self._graph_of(job.kind)
        if graph.declared is not None:
            graph.declared.enter(job)
        self._enter(job)
        Execution(graph, job, self._running, kind).begin()

    def declared(self, kind: str) -> DeclaredJobs | None:
        """As of a version without stages, by route. Raises ServiceError for a route that is not there."""
        return self._graph_of(kind)[0].declared

    def submit_instances(self, request: InstanceRequest) -> None:
        raise BadRequest(f'Model "{self._name}" has stages and takes no instances: ask for a prediction.')

    def pass_on(self, job: Job) -> None:
        """Only stages are passed something, and this is none."""
        self.submit(job)

    def wait_for_load(self, go: Callable[[], None], fail: Callable[[ServiceError], None]) -> LoadWait:
        return self._first.wait_for_load(go, fail)

    def _graph_of(self, kind: str) -> tuple[Graph, str]:
        """The route that a job takes, and the kind of its last stage's job. Raises BadRequest."""
        if kind in (PREDICT, STREAM):
            return self._main, METHOD
        for operation in (METHOD, PACKED_METHOD):
            if kind.startswith(operation):
                return self._named(kind.removeprefix(operation)), operation
        raise BadRequest(
            f'Model "{self._name}" has stages and takes predictions alone: its first stage reads the request, '
            "and its last stage writes the answer."
        )

    def _named(self, route: str) -> Graph:
        if not route:
            return self._main
        if (graph := self._graphs.get(route)) is None:
            known = ", ".join(filter(None, self._graphs)) or "none"
            raise ResourceNotFound(f'Model "{self._name}" has no route {route[:80]} (its routes: {known}).')
        return graph

    @property
    def busy(self) -> bool:
        return bool(self._running)

    def counts(self) -> RequestCounts:
        """Counts of clients' requests: one that has begun its first stage runs, also while it waits for the next."""
        begun = sum(one.begun for one in self._running)
        return RequestCounts(len(self._running) - begun, begun)

    def load(self) -> QueueLoad:
        """Load of the stage of which the most is taken."""
        loads = [stage.queue.load() for stage in self._stages.values()]
        fullest = max(loads, key=lambda one: one.taken / max(one.places, 1))
        return fullest._replace(
            is_wanted=any(one.is_wanted for one in loads),
            is_held=any(one.is_held for one in loads),
            answered=max(one.answered for one in loads),
        )

    def cancel_all(self, error: ServiceError) -> None:
        self._running.cancel_all(error)

    async def drain(self, limit: float) -> None:
        await self._running.quiet(limit)
        self.cancel_all(self._gone())

    def close(self) -> None:
        """Its stages' queues are closed."""


def _graphs(pipeline: Pipeline, stages: Mapping[str, PlainParts], *, compression: bool) -> dict[str, Graph]:
    targets = {name: (stage.source.name, stage.queue) for name, stage in stages.items()}
    bounds = {
        name: Bound(stage.edge_capacity, stage.config.edge_memory << 20) for name, stage in pipeline.stages.items()
    }
    return {name: _graph(route, targets, bounds, compression=compression) for name, route in pipeline.routes.items()}


def _graph(
    route: StageRoute, targets: Mapping[str, tuple[str, NodeTarget]], bounds: Mapping[str, Bound], *, compression: bool
) -> Graph:
    declared = declared_jobs(route.bodies, route.replies, compression=compression)
    return Graph(route.before, targets, STAGES, bounds=bounds, declared=declared)
