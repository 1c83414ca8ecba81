"""Queues of a model version, which take its requests."""

import asyncio
import contextlib
import math
from collections.abc import Callable
from typing import Any

from msx_core.config import ModelConfig
from msx_core.priorities import LOW, name_of
from msx_core.service_errors import ServiceError, ServiceUnavailable
from msx_frontend.declared_jobs import DeclaredJobs, declared_jobs
from msx_frontend.job import PLAIN, Job
from msx_frontend.metrics import ModelMetrics
from msx_frontend.models.versions.first_load import LoadWait
from msx_frontend.models.versions.model_source import ModelSource
from msx_frontend.models.versions.request_counts import QueueLoad, RequestCounts, count_requests
from msx_frontend.models.versions.status import CommonStatus
from msx_frontend.models.versions.supervisor import Supervisor
from msx_frontend.queueing.dispatcher import Dispatcher
from msx_frontend.queueing.instances import InstanceRequest
from msx_frontend.queueing.priority_queue import PriorityQueue


def _declared(config: ModelConfig) -> DeclaredJobs | None:
    return declared_jobs(config.bodies, config.replies, compression=config.compression)


class Entrance:
    """Requests enter as the model's: it counts and traces them, and its own time limit counts, too."""

    def __init__(
        self, source: ModelSource, metrics: ModelMetrics, status: CommonStatus, dispatcher: Dispatcher
    ) -> None:
        self._name, self._limit = source.name, source.config.client_timeout_in_mills / 1000
        self._metrics, self._status = metrics, status
        self.dispatcher = dispatcher

    def _enter(self, job: Job | InstanceRequest) -> None:
        job.listener = metrics = self._metrics
        if metrics.spans is not None:
            metrics.spans.begin(job)
        if limit := self._limit:
            job.deadline = min(job.deadline or math.inf, job.enqueued + limit)

    def _check_stays(self) -> None:
        """Raises ServiceUnavailable."""
        if self._status.leaving:
            raise ServiceUnavailable(f'Model "{self._name}" is being unregistered and takes no more requests.')

    def _gone(self) -> ServiceUnavailable:
        return ServiceUnavailable(f'Model "{self._name}" was unregistered before the request could run.')

    def refused(self, status: int) -> None:
        """Count a request that could not be taken."""
        self._metrics.answered(status)

    def wake(self) -> None:
        """A place on an edge of the graph is free again."""
        self.dispatcher.pump_soon()

    def describe(self) -> dict[str, Any]:
        return self.dispatcher.describe()


class VersionQueue(Entrance):
    """The requests to a version without stages."""

    def __init__(self, supervisor: Supervisor, source: ModelSource, metrics: ModelMetrics) -> None:
        super().__init__(source, metrics, supervisor.status, supervisor.dispatcher)
        self.first_load = supervisor.first_load
        self._declared = _declared(source.config)
        self._schema, self._sleep, self._replicas = supervisor.schema, supervisor.sleep, supervisor.replicas

    def submit(self, job: Job) -> None:
        """Raises ServiceError at once when the job cannot be taken."""
        if self._status.leaving or job.kind not in PLAIN:
            self._check_takes(job.kind)
        if self._sleep.level:
            self._sleep.check()
        if self._declared is not None:
            self._declared.enter(job)
        self._enter(job)
        self.dispatcher.submit(job)

    def declared(self, kind: str) -> DeclaredJobs | None:
        """Types that the service declares for jobs of this kind; None where their clients state them."""
        return self._declared

    def pass_on(self, job: Job) -> None:
        """Take the answer of the node of a graph before this one. Raises ServiceError when it cannot be taken."""
        if self._sleep.level:
            self._sleep.check()
        self._enter(job)
        self.dispatcher.pass_on(job)

    def submit_instances(self, request: InstanceRequest) -> None:
        """Raises ServiceError at once when the request cannot be taken; then none of its instances is."""
        self._check_takes(request.kind)
        self._sleep.check()
        self._enter(request)
        self.dispatcher.submit_instances(request)

    def _check_takes(self, kind: str) -> None:
        """Raises ServiceError for requests that its handler, or a version that leaves, does not take. When no worker is
        expected, the dispatcher refuses the job with the reason."""
        self._check_stays()
        if kind not in PLAIN and not self._schema.offers(kind) and self.dispatcher.may_serve:
            raise ServiceUnavailable(f'Model "{self._name}" is still loading; ask again when it is ready.')

    def wait_for_load(self, go: Callable[[], None], fail: Callable[[ServiceError], None]) -> LoadWait:
        """Let a request wait of which nothing can be decided before the first load, which it starts where workers
        follow the load. Raises Overloaded when too many wait."""
        wait = self.first_load.wait(go, fail)
        self.dispatcher.events.asked()
        return wait

    @property
    def busy(self) -> bool:
        """Clients wait for a job that is queued or running."""
        return bool(self.dispatcher.waiting or self.first_load) or any(
            group.runner.awaited for group in self._replicas.groups
        )

    def counts(self) -> RequestCounts:
        return count_requests(self.dispatcher.queue, self._replicas.groups, self._metrics.engines.waiting)

    def load(self) -> QueueLoad:
        """How much of its workers is taken."""
        groups, waiting = self._replicas.groups, self._metrics.engines.waiting
        texts = self._schema.capabilities and self._schema.capabilities.concurrent_texts
        places = sum(min(group.runner.places, texts or group.runner.places) for group in groups)
        behind = any(waiting(group.number) for group in groups)
        taken, is_queued = sum(self.counts()), self._is_queued()
        is_held = is_queued or (behind and taken >= places)
        return QueueLoad(places, taken, is_queued or behind, is_held, self.dispatcher.answered)

    def _is_queued(self) -> bool:
        """Whether a request above the lowest class waits for a worker, or behind what runs in one."""
        queue = self.dispatcher.queue
        low = queue.by_class()[name_of(LOW)] if isinstance(queue, PriorityQueue) else 0
        ahead = (job for group in self._replicas.groups for job in group.runner.in_flight.by_begin()[1])
        return self.dispatcher.waiting > low or any(job.priority > LOW for job in ahead)

    def cancel_all(self, error: ServiceError) -> None:
        """Every request that is queued or running fails with `error`."""
        self.dispatcher.fail_all(error)
        self.first_load.failed(error)
        for group in self._replicas.groups:
            group.runner.cancel_all(error)

    async def drain(self, limit: float) -> None:
        """Requests that were accepted may run for `limit` seconds; the others fail."""
        self.first_load.failed(self._gone())
        self.dispatcher.expecting_workers = bool(self.dispatcher.groups)
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._empty(), limit)
        self.dispatcher.fail_all(self._gone())

    async def _empty(self) -> None:
        while self.dispatcher.groups and self.dispatcher.waiting:
            await self._status.wait()

    def close(self) -> None:
        """A group that died while it drained has returned its next batch, which fails."""
        self.dispatcher.fail_all(self._gone())
        self.dispatcher.close()
