"""The figures of a model version that the describe API, probes, metrics and `--status` read."""

from __future__ import annotations

from collections.abc import Mapping

from msx_frontend.metrics import ModelMetrics
from msx_frontend.metrics.engines import AdapterInfo
from msx_frontend.metrics.history import Totals
from msx_frontend.metrics.traces import Traces
from msx_frontend.models.autoscaling.autoscaler import Autoscaler
from msx_frontend.models.first_load import FirstLoad
from msx_frontend.models.model_source import ModelSource
from msx_frontend.models.replicas import Replicas
from msx_frontend.models.request_counts import RequestCounts, count_requests
from msx_frontend.models.states import ModelState
from msx_frontend.models.version_status import VersionStatus
from msx_frontend.queueing.dispatcher import Dispatcher
from msx_frontend.resources.shortage import Shortage
from msx_frontend.resources.supply import VersionSupply
from msx_frontend.workers.group_end import GroupEnd
from msx_frontend.workers.replica import Replica, ReplicaState


class ObservedVersion:
    """The read-only part of a `ModelVersion`, which owns these members and changes them."""

    source: ModelSource
    resources: VersionSupply
    dispatcher: Dispatcher
    metrics: ModelMetrics
    autoscaler: Autoscaler
    first_load: FirstLoad
    stages: Mapping[str, ObservedVersion]
    traffic_share: float | None
    """By name, those of a model that has stages."""
    _replicas: Replicas
    _status: VersionStatus

    @property
    def paths(self) -> list[str]:
        """Those that its `routes:` ask for."""
        return []

    @property
    def stage_workers(self) -> dict[str, tuple[int, int]]:
        """The least and most workers of each stage, by name."""
        return {name: (stage.min_workers, stage.max_workers) for name, stage in self.stages.items()}

    @property
    def replicas(self) -> list[Replica]:
        return self._replicas.all

    @property
    def _kept(self) -> list[Replica]:
        """The wanted replicas, without those that are stopping."""
        return self._replicas.kept

    @property
    def min_workers(self) -> int:
        return self._replicas.least

    @property
    def asked_workers(self) -> int:
        """The minimum before the number of devices limited it."""
        return self._replicas.asked

    @property
    def max_workers(self) -> int:
        return self._replicas.most

    @property
    def busy(self) -> bool:
        """Clients wait for a job that is queued or running."""
        return bool(self.dispatcher.waiting or self.first_load) or any(
            group.runner.awaited for group in self._replicas.groups
        )

    @property
    def at_rest(self) -> bool:
        """No worker is in a call, not even in one whose client has left."""
        return not any(group.runner.busy for group in self._replicas.groups)

    @property
    def labels(self) -> tuple[str, str]:
        return self.source.name, self.source.version

    @property
    def traces(self) -> Traces:
        return self.metrics.traces

    def totals(self) -> Totals:
        return self.metrics.totals()

    def request_counts(self) -> RequestCounts:
        return count_requests(self.dispatcher.queue, self._replicas.groups, self.metrics.engines.waiting)

    def gauges(self) -> dict[str, float]:
        queued, running = self.request_counts()
        return {
            "msx_queue_depth": self.dispatcher.waiting,
            "msx_queue_instances": self.dispatcher.queue.instances,
            "msx_queue_oldest_seconds": self.dispatcher.oldest_age,
            "msx_requests_in_flight": sum(group.runner.busy for group in self._replicas.groups),
            "msx_requests_queued": queued,
            "msx_requests_running": running,
            "msx_kv_cache_utilization": self.metrics.engines.utilization,
            "msx_streams_waiting": sum(group.runner.waiting_streams for group in self._replicas.groups),
            **({} if self.traffic_share is None else {"msx_traffic_share": self.traffic_share}),
            "msx_workers_wanted": self.autoscaler.wanted,
            "msx_workers_ready": self.ready_workers,
            "msx_workers_waiting": self.waiting_workers,
        }

    def adapter_info(self) -> AdapterInfo | None:
        return self.metrics.engines.adapters

    def states(self) -> dict[str, bool]:
        return {state.value: state is self.state for state in ModelState}

    def worker_memory(self) -> list[tuple[str, str, int]]:
        return list(self._replicas.memory())

    @property
    def ready_workers(self) -> int:
        return len(self.dispatcher.groups)

    @property
    def waiting_workers(self) -> int:
        """Workers that wait for a resource before they can start."""
        return sum(replica.state is ReplicaState.WAITING for replica in self._kept)

    @property
    def shortage(self) -> Shortage | None:
        """The resource that they wait for."""
        return self._status.shortage

    @property
    def expecting_workers(self) -> bool:
        """Requests are accepted: a worker serves, or may serve soon."""
        return self.dispatcher.may_serve

    @property
    def refusal(self) -> str:
        """The reason for clients why requests are refused; "" while a worker serves, or none is wanted."""
        return "" if self.ready_workers else self.dispatcher.refusal

    @property
    def uses_devices(self) -> bool:
        return bool(self.replicas) and self.resources.has_devices

    @property
    def device_type(self) -> str:
        """The kind of device of its workers, or "cpu", also while it has no workers."""
        return self.resources.device_type if self.replicas else "cpu"

    @property
    def serving(self) -> bool:
        """Answers requests now, or has no wanted workers."""
        if self.on_demand:
            return self.answers
        return self.state in (ModelState.READY, ModelState.DEGRADED) and (self.ready_workers > 0 or not self._kept)

    @property
    def on_demand(self) -> bool:
        """It may have no worker: the first request starts one, and waits for it."""
        return self.autoscaler.on_demand

    @property
    def answers(self) -> bool:
        """A request that comes now is answered: by a worker that is ready, or by one that it starts."""
        if self.state is ModelState.ASLEEP:
            return False
        return self.ready_workers > 0 or (self.on_demand and self.expecting_workers)

    @property
    def has_served(self) -> bool:
        """A worker has been ready once."""
        return self._status.served

    @property
    def wants_workers(self) -> bool:
        return self.min_workers > 0 or (bool(self._kept) and not self.on_demand)

    @property
    def healthy(self) -> bool:
        """TorchServe's rule: no wanted worker has been given up. A worker that restarts counts as healthy."""
        kept = self._kept
        lasting = sum(replica.state is not ReplicaState.FAILED for replica in kept)
        return self.state is not ModelState.FAILED and lasting >= min(self.min_workers, len(kept))

    @property
    def state(self) -> ModelState:
        return self._status.state

    @property
    def reason(self) -> str:
        """Why it is not READY: the reason of the last worker."""
        return self._status.reason

    @property
    def lost(self) -> str:
        """Why its archive is missing; "" if it is there. The version serves nothing until it is registered again."""
        return self._status.lost

    @property
    def last_end(self) -> GroupEnd | None:
        return self._status.last_end
