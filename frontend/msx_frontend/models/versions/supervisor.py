"""Does what follows when workers of a model version load, answer, or end: its queue and its status know it then."""

import logging
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import NamedTuple, Protocol

from msx_core.generation import Capabilities
from msx_core.sequences import SequenceKeys
from msx_frontend.graphs.edges import enter
from msx_frontend.job import Job
from msx_frontend.metrics import ModelMetrics
from msx_frontend.models.autoscaling.timer import AutoscalingTimer
from msx_frontend.models.versions.autoscaler import Autoscaler
from msx_frontend.models.versions.first_load import FirstLoad
from msx_frontend.models.versions.group_recipe import GroupRecipe
from msx_frontend.models.versions.replicas import Replicas
from msx_frontend.models.versions.schema import VersionSchema
from msx_frontend.models.versions.sleep import VersionSleep
from msx_frontend.models.versions.status import VersionStatus, alive
from msx_frontend.queueing.dispatcher import Dispatcher
from msx_frontend.queueing.events import QueueEvents
from msx_frontend.queueing.routing.routed import routed_jobs
from msx_frontend.resources.supply import VersionSupply
from msx_frontend.workers.batch_runner import BatchRunner
from msx_frontend.workers.group import WorkerGroup
from msx_frontend.workers.group_state import GroupState
from msx_frontend.workers.in_flight import Finished
from msx_frontend.workers.replica import Replica, ReplicaState
from msx_frontend.workers.torchserve_lines import UnansweredCalls
from msx_protocol import MetricInfo, MetricSample

log = logging.getLogger("msx.models")


class VersionEvents(Protocol):
    """Events of a version, for its owner."""

    def judged(self) -> None:
        """Its status may have changed."""


Refusal = Callable[[str, Capabilities], str]


class VersionResources(NamedTuple):
    """Parts of the server that a version uses. `timer` is one for all versions of a server."""

    supply: VersionSupply
    metrics: ModelMetrics
    sequence_keys: SequenceKeys
    timer: AutoscalingTimer
    refusal: Refusal
    """Why a model with these capabilities may not serve; "" if it may."""


class Supervisor:
    """Has the parts of one version between which events go to and fro. It is the owner of the version's replicas."""

    def __init__(
        self,
        recipe: GroupRecipe,
        given: VersionResources,
        events: VersionEvents | None,
    ) -> None:
        resources, metrics, sequence_keys, timer, self._refusal = given
        source, config = recipe.source, recipe.source.config
        self._config, self._metrics, self._events = config, metrics, events
        self.labels = labels = source.name, source.version
        self.status = VersionStatus(*labels)
        self.schema = VersionSchema(source.name)
        of_queue = QueueEvents(lambda: self.autoscaler.asked(), metrics.prioritised, enter if source.stage_of else None)
        self.dispatcher = Dispatcher(*labels, config, sequence_keys, of_queue)
        self.first_load = FirstLoad(source.name, config.job_queue_size, config.response_timeout)
        self.replicas = Replicas(config, labels, resources, recipe, metrics, self, self.judge)
        self.autoscaler = Autoscaler(
            labels, config, self.dispatcher, self.replicas, metrics, timer, self.judge, self.first_load
        )
        self._unanswered = UnansweredCalls()
        self.sleep = VersionSleep(source.name, self._ready_groups)

    def _ready_groups(self) -> list[BatchRunner]:
        return [group.runner for group in self.replicas.groups if group.state is GroupState.READY]

    def judge(self) -> None:
        """The status follows from the replicas, until the version is being removed."""
        if not self.status.leaving:
            self._judge()
        self.status.changed.set()
        if self._events is not None:
            self._events.judged()

    def lose(self, reason: str, least: int, most: int) -> None:
        """The archive is missing: no worker can start. The version is FAILED; `reason` says why."""
        self.status.lost, self.replicas.least, self.replicas.most = reason, least, most
        self.judge()

    def _judge(self) -> None:
        kept, dispatcher, status = self.replicas.kept, self.dispatcher, self.status
        dispatcher.expecting_workers = alive(kept) or self.autoscaler.may_start
        status.judge(kept, len(dispatcher.groups), asleep=self.sleep.level > 0)
        dispatcher.refusal = status.refusal(kept) or self.autoscaler.refusal
        if not dispatcher.may_serve:
            error = status.error(dispatcher.refusal)
            if dispatcher.waiting:
                dispatcher.fail_all(error)
            self.first_load.failed(error)
        elif self.schema.capabilities is not None:
            self.first_load.loaded()

    # -- what replicas and groups tell --

    def replica_changed(self, replica: Replica) -> None:
        if replica.state is ReplicaState.READY and replica.group is not None:
            self._serves(replica.group)
        self.status.replica_changed(replica)
        self.autoscaler.replica_changed(replica)
        if self.autoscaler.refusal:
            self.status.forget_failed_load()
        if replica.state is ReplicaState.FAILED:
            replica.release()
        self.judge()

    def refusal(self, group: WorkerGroup) -> str:
        """Why what this group has loaded may not serve; "" if it may."""
        return self._refusal(self.labels[0], group.capabilities)

    def _serves(self, group: WorkerGroup) -> None:
        self.schema.loaded(group)
        if self.dispatcher.routed is None:
            metrics = self._metrics
            self.dispatcher.routed = routed_jobs(self._config, group.capabilities, group.runner, lambda: metrics.text)
        self.dispatcher.sequences.take_over(group.runner, group.handover.sequences())
        self.dispatcher.group_ready(group.runner)
        self._put_to_sleep(group)

    def _put_to_sleep(self, group: WorkerGroup) -> None:
        """A restarted server has the level of the state, whatever the archive holds by now."""
        if self.sleep.level and not group.capabilities.sleep:
            log.warning("model %s %s cannot sleep any more, and is awake", *self.labels)
            self.sleep.level = 0
        self.sleep.started(group.runner)

    def replica_leaves(self, replica: Replica) -> None:
        if replica.group is not None:
            self.dispatcher.group_gone(replica.group.runner)

    def group_has_room(self, group: BatchRunner) -> None:
        self.dispatcher.group_has_room(group)
        if self.status.leaving or self.sleep.level:
            self.status.changed.set()

    def group_ended(self, group: WorkerGroup) -> None:
        self._metrics.worker_ended(group.number)
        self._unanswered.group_ended(group.ended_by, self.dispatcher.answered, {**group.labels, "worker": group.number})
        self.dispatcher.group_gone(group.runner)
        self.judge()

    def batches_finished(self, batches: list[Finished]) -> None:
        if batches.count(batches[0]) == len(batches):  # mostly: they are of one size, and share their time equally
            return self._finished(*batches[0], len(batches))
        for one, same in groupby(batches):
            self._finished(*one, len(list(same)))
        return None

    def _finished(self, size: int, seconds: float, stay: float, count: int) -> None:
        dispatcher = self.dispatcher
        dispatcher.answered += size * count
        dispatcher.policy.finished(size, seconds, count)
        self._metrics.batch(size, stay, count)

    def group_replied(self, group: WorkerGroup) -> None:
        for replica in self.replicas.all:
            if replica.group is group:
                replica.replied()

    def jobs_returned(self, jobs: list[Job]) -> None:
        self.dispatcher.put_back(jobs)

    def guests_arrived(self, group: BatchRunner, jobs: Sequence[Job]) -> None:
        if self._config.stateful:
            self.dispatcher.sequences.guests_arrived(group, jobs)

    def forms_arrived(self, forms: list[MetricInfo]) -> None:
        self._metrics.handler_forms(forms)

    def samples_arrived(self, group: WorkerGroup, samples: list[MetricSample]) -> None:
        """The last samples of a group arrive after its end."""
        self._metrics.handler_samples(samples, None if group.state is GroupState.ENDED else group.number)
