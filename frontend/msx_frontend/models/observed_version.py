"""What is read of a model version: by the describe API, probes, metrics and `--status`."""

from __future__ import annotations

from msx_frontend.models.model_source import ModelSource
from msx_frontend.models.replicas import Replicas
from msx_frontend.models.states import ModelState
from msx_frontend.models.version_status import VersionStatus
from msx_frontend.queueing.dispatcher import Dispatcher
from msx_frontend.resources.model_resources import ModelResources
from msx_frontend.resources.shortage import Shortage
from msx_frontend.workers.group_end import GroupEnd
from msx_frontend.workers.replica import Replica, ReplicaState


class ObservedVersion:
    """The reading half of a `ModelVersion`, which owns these members and changes them."""

    source: ModelSource
    resources: ModelResources
    dispatcher: Dispatcher
    _replicas: Replicas
    _status: VersionStatus

    @property
    def replicas(self) -> list[Replica]:
        return self._replicas.all

    @property
    def _kept(self) -> list[Replica]:
        """Those that are wanted: one that was told to stop only finishes what it has."""
        return [replica for replica in self.replicas if not replica.leaving]

    @property
    def min_workers(self) -> int:
        return self._replicas.least

    @property
    def asked_workers(self) -> int:
        """The minimum before it was capped by the devices that there are."""
        return self._replicas.asked

    @property
    def max_workers(self) -> int:
        return self._replicas.most

    @property
    def busy(self) -> bool:
        """Clients wait for a job that is queued or running."""
        return bool(self.dispatcher.waiting) or any(group.runner.awaited for group in self._replicas.groups)

    @property
    def at_rest(self) -> bool:
        """No worker is in a call, not even in one whose client has left."""
        return not any(group.runner.busy for group in self._replicas.groups)

    @property
    def labels(self) -> tuple[str, str]:
        return self.source.name, self.source.version

    def gauges(self) -> dict[str, float]:
        return {
            "msx_queue_depth": self.dispatcher.waiting,
            "msx_queue_oldest_seconds": self.dispatcher.oldest_age,
            "msx_requests_in_flight": sum(group.runner.busy for group in self._replicas.groups),
            "msx_workers_wanted": self.min_workers,
            "msx_workers_ready": self.ready_workers,
            "msx_workers_waiting": self.waiting_workers,
        }

    def states(self) -> dict[str, bool]:
        return {state.value: state is self.state for state in ModelState}

    def worker_memory(self) -> list[tuple[str, str, int]]:
        return list(self._replicas.memory())

    @property
    def ready_workers(self) -> int:
        return len(self.dispatcher.groups)

    @property
    def waiting_workers(self) -> int:
        """Those that cannot start, because something is missing."""
        return sum(replica.state is ReplicaState.WAITING for replica in self._kept)

    @property
    def shortage(self) -> Shortage | None:
        """What they wait for."""
        return self._status.shortage

    @property
    def expecting_workers(self) -> bool:
        """Requests are taken, for workers that are there or may well come."""
        return self.dispatcher.may_serve

    @property
    def refusal(self) -> str:
        """Why no worker can be waited for, as clients are told; "" while one serves, or none is wanted."""
        return "" if self.ready_workers else self.dispatcher.refusal

    @property
    def uses_devices(self) -> bool:
        return bool(self.replicas) and self.resources.has_devices

    @property
    def device_type(self) -> str:
        """What its workers run on: the accelerator's kind, or "cpu", also while it has none."""
        return self.resources.device_type if self.replicas else "cpu"

    @property
    def serving(self) -> bool:
        """Answers requests now; a version without wanted workers is not missing any."""
        return self.state in (ModelState.READY, ModelState.DEGRADED) and (self.ready_workers > 0 or not self._kept)

    @property
    def has_served(self) -> bool:
        """A worker has been ready once."""
        return self._status.served

    @property
    def wants_workers(self) -> bool:
        return self.min_workers > 0 or bool(self._kept)

    @property
    def healthy(self) -> bool:
        """TorchServe's: no worker of the wanted ones has been given up; one that restarts counts as healthy."""
        kept = self._kept
        lasting = sum(replica.state is not ReplicaState.FAILED for replica in kept)
        return self.state is not ModelState.FAILED and lasting >= min(self.min_workers, len(kept))

    @property
    def state(self) -> ModelState:
        return self._status.state

    @property
    def reason(self) -> str:
        """Why it is not READY, in the last worker's words."""
        return self._status.reason

    @property
    def lost(self) -> str:
        """Why its archive cannot be had: it is known, and serves nothing until it is registered again."""
        return self._status.lost

    @property
    def last_end(self) -> GroupEnd | None:
        return self._status.last_end
