"""One version of a model: its state, its workers, its queue."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import time
from collections.abc import Callable
from functools import partial
from itertools import groupby

from msx_core.generation import AdapterFiles, Capabilities
from msx_core.methods import Methods, method_of
from msx_core.sequences import SequenceKeys
from msx_frontend.errors import BadRequest, HandlerMethodNotFound, NotOffered, ServiceError, ServiceUnavailable
from msx_frontend.graphs.edges import enter
from msx_frontend.job import OPERATIONS, PLAIN, Job
from msx_frontend.management_errors import WorkersNotStarted
from msx_frontend.metrics import ModelMetrics
from msx_frontend.models.autoscaling.autoscaler import Autoscaler
from msx_frontend.models.autoscaling.timer import AutoscalingTimer
from msx_frontend.models.first_load import FirstLoad, LoadWait
from msx_frontend.models.group_recipe import GroupRecipe
from msx_frontend.models.observed_version import ObservedVersion
from msx_frontend.models.replicas import Replicas
from msx_frontend.models.sleep import Asleep, CannotSleep, VersionSleep
from msx_frontend.models.state_store import StoredVersion
from msx_frontend.models.states import ModelState
from msx_frontend.models.version_status import VersionStatus, alive
from msx_frontend.queueing.dispatcher import Dispatcher
from msx_frontend.queueing.events import QueueEvents
from msx_frontend.queueing.instances import InstanceRequest
from msx_frontend.queueing.routing.routed import routed_jobs
from msx_frontend.resources.supply import VersionSupply
from msx_frontend.workers.batch_runner import BatchRunner
from msx_frontend.workers.group import WorkerGroup
from msx_frontend.workers.group_end import GroupEnd
from msx_frontend.workers.group_state import GroupState
from msx_frontend.workers.replica import Replica, ReplicaState
from msx_protocol import MetricInfo, MetricSample
from msx_sdk.kserve import Signature

log = logging.getLogger("msx.models")


class ModelVersion(ObservedVersion):
    """Owns its replicas; the replicas' groups pull from its queue."""

    def __init__(
        self,
        recipe: GroupRecipe,
        resources: VersionSupply,
        metrics: ModelMetrics,
        sequence_keys: SequenceKeys,
        autoscaling: AutoscalingTimer | None = None,
    ) -> None:
        """`autoscaling` is one for all versions of a server."""
        source = recipe.source
        self.source = source
        self.config = source.config
        self.environment = recipe.environment
        self.metrics = metrics
        self.resources = resources
        events = QueueEvents(lambda: self.autoscaler.asked(), metrics.prioritised, enter if source.stage_of else None)
        self.dispatcher = Dispatcher(source.name, source.version, source.config, sequence_keys, events)
        self._status = VersionStatus(*self.labels)
        self._replicas = Replicas(source.config, self.labels, resources, recipe, metrics, self, self._judge)
        self.first_load = FirstLoad(source.name, source.config.job_queue_size, source.config.response_timeout)
        self.autoscaler = Autoscaler(
            self.labels,
            source.config,
            self.dispatcher,
            self._replicas,
            metrics,
            autoscaling or AutoscalingTimer(),
            self._judge,
            self.first_load,
        )
        self.sleep = VersionSleep(source.name, lambda: [group.runner for group in self._ready_groups])
        self.stages: dict[str, ModelVersion] = {}
        self.created = time.time()
        self.record: StoredVersion | None = None
        """As the state has it; None for the node of a workflow, and where its registration was taken back."""
        self.failed_scaling = ""
        """Why the last change of its workers, which is saved, is not in force; "" where it is."""
        self.capabilities: Capabilities | None = None
        """The operations of its handler; None until the first worker has loaded it."""
        self.signature: Signature | None = None
        """The tensors of its inputs and outputs; None until the first worker has loaded it."""
        self.methods: Methods | None = None
        """The methods of its handler; None until the first worker has loaded it."""
        self.adapters: dict[str, AdapterFiles] = {}
        """Those that were loaded while it runs, by name."""
        self.traffic_share: float | None = None
        """Of the requests that name no version, from 0 to 1; None where the model's traffic is not divided."""
        self.judged: Callable[[], None] = _nobody
        """Called when its status may have changed, for the model whose stage it is."""

    @property
    def parts(self) -> list[ModelVersion]:
        """What has workers: its stages, else the version itself."""
        return list(self.stages.values()) or [self]

    @property
    def forgotten(self) -> bool:
        """Its registration was taken back, because no worker has ever served: the next start does not know it."""
        return self.record is None and not self.source.workflow

    @property
    def adapter_names(self) -> tuple[str, ...]:
        """Those that a request may choose: of the archive, and loaded ones."""
        packed = () if self.capabilities is None else self.capabilities.adapters
        return (*packed, *self.adapters)

    def part(self, stage: str | None) -> ModelVersion:
        """The stage of this name; without a name the whole version. Raises BadRequest."""
        if stage is None:
            return self
        if (found := self.stages.get(stage)) is None:
            known = f"its stages are {', '.join(self.stages)}" if self.stages else "it has none"
            raise BadRequest(f'Model "{self.source.name}" has no stage {stage[:80]}: {known}.')
        return found

    # -- requests --

    def submit(self, job: Job) -> None:
        """Raises ServiceError at once when the job cannot be taken."""
        if self._status.leaving or job.kind not in PLAIN:
            self._check_takes(job.kind)
        self._enter(job)
        self.dispatcher.submit(job)

    def pass_on(self, job: Job) -> None:
        """What the node of a graph before this one has answered. Raises ServiceError when it cannot be taken."""
        self._enter(job)
        self.dispatcher.pass_on(job)

    def wait_for_load(self, go: Callable[[], None], fail: Callable[[ServiceError], None]) -> LoadWait:
        """For a request of which nothing can be decided before the first load, which it starts where workers follow the
        load. Raises Overloaded when too many wait."""
        wait = self.first_load.wait(go, fail)
        self.dispatcher.events.asked()
        return wait

    def refused(self, status: int) -> None:
        """Counts a request that `submit` or `pass_on` has refused."""
        self.metrics.answered(status)

    def wake(self) -> None:
        """A place on an edge of the graph is free again."""
        self.dispatcher.pump_soon()

    def _enter(self, job: Job | InstanceRequest) -> None:
        """It is counted and traced as the model's, whose own time limit counts, too. Raises Asleep."""
        self.sleep.check()
        job.listener = metrics = self.metrics
        if metrics.spans is not None:
            metrics.spans.begin(job)
        if limit := self.config.client_timeout_in_mills:
            job.deadline = min(job.deadline or math.inf, job.enqueued + limit / 1000)

    def _check_takes(self, kind: str) -> None:
        """Raises ServiceError for requests that its handler, or a version that leaves, does not take."""
        if self._status.leaving:
            raise ServiceUnavailable(f'Model "{self.source.name}" is being unregistered and takes no more requests.')
        if kind not in PLAIN:
            self._check_offered(kind)

    def submit_instances(self, request: InstanceRequest) -> None:
        """Raises ServiceError at once when the request cannot be taken; then none of its instances is."""
        self._check_takes(request.kind)
        self._enter(request)
        self.dispatcher.submit_instances(request)

    def _check_offered(self, operation: str) -> None:
        """When no worker is expected, the dispatcher refuses the job with the reason. Before one has loaded the
        handler, the worker checks methods.
        """
        if operation not in OPERATIONS:
            return self._check_method(method_of(operation))
        if self.capabilities is not None and not getattr(self.capabilities, operation):
            raise NotOffered(self.source.name, operation)
        if self.capabilities is None and self.expecting_workers:
            raise ServiceUnavailable(f'Model "{self.source.name}" is still loading; ask again when it is ready.')
        return None

    def _check_method(self, name: str) -> None:
        if name and self.methods is not None and name not in (known := [one.name for one in self.methods]):
            raise HandlerMethodNotFound(self.source.name, name, known)

    # -- workers --

    async def fall_asleep(self, level: int) -> None:
        """New requests are refused at once; those in progress have `responseTimeout` to end. Raises ServiceError."""
        self.check_sleeper()
        end = partial(self.cancel_all, Asleep(self.source.name))
        await self.sleep.fall_asleep(level, self._rest, end)
        self._judge()

    async def wake_up(self) -> None:
        """Raises ServiceError."""
        self.check_sleeper()
        await self.sleep.wake()
        self._judge()

    def check_sleeper(self) -> None:
        """Raises CannotSleep: any other handler would take the message for a request."""
        if self.stages or self.capabilities is None or not self.capabilities.sleep:
            raise CannotSleep(self.source.name)

    async def _rest(self) -> None:
        self._judge()
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._resting(), self.config.response_timeout)

    async def _resting(self) -> None:
        while self.busy or not self.at_rest:
            await self.changed()

    @property
    def _ready_groups(self) -> list[WorkerGroup]:
        return [group for group in self._replicas.groups if group.state is GroupState.READY]

    async def scale(self, min_workers: int, max_workers: int) -> None:
        """See `Replicas.scale`. Raises WorkersNotStarted for a version that is lost."""
        if self.lost and min_workers:
            raise WorkersNotStarted(*self.labels, self.lost)
        await self._replicas.scale(min_workers, max_workers, self.config.response_timeout)
        self.autoscaler.bounded()
        self._judge()

    def capped(self, bounds: tuple[int, int]) -> tuple[int, int]:
        """These least and most workers, as far as its devices go."""
        return self._replicas.capped(*bounds)

    def turn_autoscaling(self, on: bool) -> None:
        """Of all stages. It takes effect when the bounds are set, by `scale`."""
        for part in self.parts:
            part.autoscaler.turn(on)

    def lose(self, reason: str, min_workers: int, max_workers: int) -> None:
        """The archive is missing: no worker can start. The version is FAILED; `reason` says why."""
        self._status.lost, self._replicas.least, self._replicas.most = reason, min_workers, max_workers
        self._judge()

    async def settled(self) -> GroupEnd | None:
        """Wait until all workers are ready or wait for resources: returns None. Returns the end of a worker whose first
        load failed; one that was killed and starts again at once has not.

        Raises RequirementsFailed when the version has no workers and the requirements cannot be installed.
        """
        if not self.replicas:
            await self.environment.ready()
        while True:
            ended = (r.last_end for r in self.replicas if r.state is not ReplicaState.READY and not r.excused)
            if failed := next((end for end in ended if end is not None and not end.elsewhere), None):
                return failed
            if all(replica.state in (ReplicaState.READY, ReplicaState.WAITING) for replica in self.replicas):
                return None
            await self.changed()

    async def changed(self) -> None:
        """Wait until the status may have changed."""
        self._status.changed.clear()
        await self._status.changed.wait()

    async def close(self, drain_limit: float) -> None:
        """Drain, then fail what is left; returns when no process of this version is left."""
        self._status.move(ModelState.DRAINING)
        self.autoscaler.close()
        gone = f'Model "{self.source.name}" was unregistered before the request could run.'
        self.first_load.failed(ServiceUnavailable(gone))
        self.dispatcher.expecting_workers = bool(self.dispatcher.groups)
        await self._drain_queue(drain_limit)
        too_late = ServiceUnavailable(f'Model "{self.source.name}" was unregistered before the request could run.')
        self.dispatcher.fail_all(too_late)
        await self._replicas.remove_all(drain_limit)
        self.dispatcher.fail_all(too_late)  # a group that died while it drained has returned its next batch
        if not self.source.stage_of:
            await self.environment.close()
        self.dispatcher.close()
        self.metrics.close()
        self.resources.forget()
        self._status.move(ModelState.GONE)

    def cancel_all(self, error: ServiceError) -> None:
        """Every request that is queued or running fails with `error`."""
        self.dispatcher.fail_all(error)
        self.first_load.failed(error)
        for group in self._replicas.groups:
            group.runner.cancel_all(error)

    async def _drain_queue(self, limit: float) -> None:
        """Accepted jobs may run until the limit."""
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._queue_empty(), limit)

    async def _queue_empty(self) -> None:
        while self.dispatcher.groups and self.dispatcher.waiting:
            await self.changed()

    # -- what replicas and groups tell --

    def replica_changed(self, replica: Replica) -> None:
        if replica.state is ReplicaState.READY and replica.group is not None:
            self.capabilities, self.signature = replica.group.capabilities, replica.group.signature
            self.methods = replica.group.methods
            self._route_texts(replica.group.runner)
            self.dispatcher.group_ready(replica.group.runner)
            self._put_to_sleep(replica.group)
        self._status.replica_changed(replica)
        self.autoscaler.replica_changed(replica)
        if self.autoscaler.refusal:
            self._status.forget_failed_load()
        if replica.state is ReplicaState.FAILED:
            replica.release()
        self._judge()

    def _put_to_sleep(self, group: WorkerGroup) -> None:
        """A restarted server has the level of the state, whatever the archive holds by now."""
        if self.sleep.level and not group.capabilities.sleep:
            log.warning("model %s %s cannot sleep any more, and is awake", *self.labels)
            self.sleep.level = 0
        self.sleep.started(group.runner)

    def _route_texts(self, group: BatchRunner) -> None:
        if self.dispatcher.routed is None:
            offered, metrics = self.capabilities, self.metrics
            self.dispatcher.routed = routed_jobs(self.config, offered, group, lambda: metrics.text)

    def replica_leaves(self, replica: Replica) -> None:
        if replica.group is not None:
            self.dispatcher.group_gone(replica.group.runner)

    def group_has_room(self, group: BatchRunner) -> None:
        self.dispatcher.group_has_room(group)
        if self._status.leaving or self.sleep.level:
            self._status.changed.set()

    def group_ended(self, group: WorkerGroup) -> None:
        self.metrics.worker_ended(group.number)
        self.dispatcher.group_gone(group.runner)
        self._judge()

    def batches_finished(self, batches: list[tuple[int, float]]) -> None:
        if batches.count(batches[0]) == len(batches):  # mostly: they are of one size, and share their time equally
            return self._finished(*batches[0], len(batches))
        for one, same in groupby(batches):
            self._finished(*one, len(list(same)))
        return None

    def _finished(self, size: int, seconds: float, count: int) -> None:
        dispatcher = self.dispatcher
        dispatcher.answered += size * count
        dispatcher.policy.finished(size, seconds, count)
        self.metrics.batch(size, seconds, count)

    def group_replied(self, group: WorkerGroup) -> None:
        for replica in self.replicas:
            if replica.group is group:
                replica.replied()

    def jobs_returned(self, jobs: list[Job]) -> None:
        self.dispatcher.put_back(jobs)

    def forms_arrived(self, forms: list[MetricInfo]) -> None:
        self.metrics.handler_forms(forms)

    def samples_arrived(self, group: WorkerGroup, samples: list[MetricSample]) -> None:
        """The last samples of a group arrive after its end."""
        self.metrics.handler_samples(samples, None if group.state is GroupState.ENDED else group.number)

    def _judge(self) -> None:
        """The state follows from the replicas, until the version is being removed."""
        if not self._status.leaving:
            kept = self._kept
            self.dispatcher.expecting_workers = alive(kept) or self.autoscaler.may_start
            self._status.judge(kept, self.ready_workers, asleep=self.sleep.level > 0)
            self.dispatcher.refusal = self._status.refusal(kept) or self.autoscaler.refusal
            if self.dispatcher.waiting and not self.dispatcher.may_serve:
                self.dispatcher.fail_all(self._status.error(self.dispatcher.refusal))
            if not self.dispatcher.may_serve:
                self.first_load.failed(self._status.error(self.dispatcher.refusal))
            elif self.capabilities is not None:
                self.first_load.loaded()
        self._status.changed.set()
        self.judged()


def _nobody() -> None:
    return None
