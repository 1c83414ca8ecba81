"""One version of a model: its state, its workers, its queue."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from msx_backend.protocol import MetricSample
from msx_frontend.backoff import Backoff
from msx_frontend.devices import Lease, ModelDevices, NoDevicesError
from msx_frontend.dispatcher import Dispatcher
from msx_frontend.errors import NotOffered, ServiceError, ServiceUnavailable, WorkerDied, WorkersNotStarted
from msx_frontend.job import OPERATIONS, Job
from msx_frontend.metrics import ModelMetrics
from msx_frontend.states import ModelState, move
from msx_frontend.workers.endings import GroupEnd
from msx_frontend.workers.group import GroupSpec, GroupState, WorkerGroup
from msx_frontend.workers.replica import Replica, ReplicaState
from msx_sdk.config import ModelConfig
from msx_sdk.generation import Capabilities
from msx_sdk.kserve import Signature

log = logging.getLogger("msx.models")

FIRST_WORKER_ID = 9000
"""TorchServe numbers its workers by their ports, from 9000 on."""

_worker_ids = count(FIRST_WORKER_ID)


@dataclass(frozen=True)
class ModelSource:
    """Where a version came from, and what it is started with."""

    name: str
    version: str
    url: str
    digest: str
    model_dir: Path
    handler: str
    manifest: dict[str, Any]
    config: ModelConfig
    options: dict[str, Any] = field(default_factory=dict)
    """What the registration asked for, to be asked again after a restart."""
    at_startup: bool = False
    workflow: str = ""
    """Whose node it is. A node that is a function has no `url`."""


class ModelVersion:
    """Owns its replicas; the replicas' groups pull from its queue."""

    def __init__(
        self,
        source: ModelSource,
        devices: ModelDevices,
        make_spec: Callable[[ModelSource, Lease, int, int], GroupSpec],
        metrics: ModelMetrics,
    ) -> None:
        self.source, self.config, self.metrics = source, source.config, metrics
        self.devices, self._make_spec = devices, make_spec
        self.dispatcher = Dispatcher(source.name, source.version, source.config)
        self.state = ModelState.READY
        self.replicas: list[Replica] = []
        self.min_workers = self.max_workers = 0
        self.asked_workers = 0
        """The minimum before it was capped by the devices that there are."""
        self.created = time.time()
        self.last_end: GroupEnd | None = None
        self.capabilities: Capabilities | None = None
        """What its handler offers; None until its first worker has told."""
        self.signature: Signature | None = None
        """The tensors that it takes and gives; likewise."""
        self.lost = ""
        """Why its archive cannot be had: it is known, and serves nothing until it is registered again."""
        self._been_ready = False
        self._changed = asyncio.Event()
        self._scaling = asyncio.Lock()

    # -- requests --

    def submit(self, job: Job) -> None:
        """Raises ServiceError at once when the job cannot be taken."""
        if self.state in (ModelState.DRAINING, ModelState.GONE):
            raise ServiceUnavailable(f'Model "{self.source.name}" is being unregistered and takes no more requests.')
        if job.kind in OPERATIONS:
            self._check_offered(job.kind)
        job.listener = self.metrics
        if limit := self.config.client_timeout_in_mills / 1000:
            job.deadline = min(job.deadline or math.inf, job.enqueued + limit)
        self.dispatcher.submit(job)

    def _check_offered(self, operation: str) -> None:
        """Without workers, and none to come, the dispatcher has a better word."""
        if self.capabilities is not None and not getattr(self.capabilities, operation):
            raise NotOffered(self.source.name, operation)
        if self.capabilities is None and self.dispatcher.expecting_workers:
            raise ServiceUnavailable(f'Model "{self.source.name}" is still loading; ask again when it is ready.')

    # -- workers --

    async def scale(self, min_workers: int, max_workers: int) -> None:
        """Start workers up to `min_workers`, remove those above `max_workers` (the newest first).

        Where parallel groups own devices, no more than fit on them. Raises DeviceError when no other one fits, and
        WorkersNotStarted for a version that is lost.
        """
        if self.lost and min_workers:
            raise WorkersNotStarted(*self.labels, self.lost)
        async with self._scaling:
            self.asked_workers = min_workers
            await self._remove(self._given_up())
            least, most = self._capped(min_workers, max_workers)
            leases = self._lease_devices(least - len(self.replicas))
            self.min_workers, self.max_workers = min(least, len(self.replicas) + len(leases)), most
            self.replicas += [self._new_replica(lease) for lease in leases]
            surplus = self.replicas[most:]
            self._judge()
            await self._remove(surplus)
            self._judge()

    def lose(self, reason: str, min_workers: int, max_workers: int) -> None:
        """There is no archive to start workers from. It is FAILED, with what was wanted of it."""
        self.lost, self.min_workers, self.max_workers = reason, min_workers, max_workers
        self._judge()

    async def settled(self) -> GroupEnd | None:
        """Until all workers are ready (None), or one has failed its first load (its end)."""
        while True:
            ended = (r.last_end for r in self.replicas if r.state is not ReplicaState.READY)
            if failed := next(filter(None, ended), None):
                return failed
            if all(replica.state is ReplicaState.READY for replica in self.replicas):
                return None
            self._changed.clear()
            await self._changed.wait()

    async def close(self, drain_limit: float) -> None:
        """Drain, then fail what is left; returns when no process of this version is left."""
        self._move(ModelState.DRAINING)
        self.dispatcher.expecting_workers = bool(self.dispatcher.groups)
        await self._drain_queue(drain_limit)
        too_late = ServiceUnavailable(f'Model "{self.source.name}" was unregistered before the request could run.')
        self.dispatcher.queue.fail_all(too_late)
        async with self._scaling:
            await self._remove(list(self.replicas), drain_limit)
        self.dispatcher.queue.fail_all(too_late)  # a group that died while it drained has returned its next batch
        self.dispatcher.close()
        self.devices.forget()
        self._move(ModelState.GONE)

    def cancel_all(self, error: ServiceError) -> None:
        """Every request that is queued or running fails with `error`."""
        self.dispatcher.queue.fail_all(error)
        for group in self._groups():
            group.cancel_all(error)

    async def _drain_queue(self, limit: float) -> None:
        """Queued jobs were accepted: they run as long as there is time."""
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._queue_empty(), limit)

    async def _queue_empty(self) -> None:
        while self.dispatcher.groups and len(self.dispatcher.queue):
            self._changed.clear()
            await self._changed.wait()

    def _capped(self, least: int, most: int) -> tuple[int, int]:
        """TorchServe's rule; the caller's reply states what was asked for, describe what there is."""
        capacity = self.devices.capacity
        if not capacity or most <= capacity:
            return least, most
        size, name = self.config.layout.devices, " ".join(self.labels)
        log.warning("model %s: %d workers of %d devices each fit, not %d", name, capacity, size, most)
        return min(least, capacity), capacity

    def _lease_devices(self, number: int) -> list[Lease]:
        """As many as are to be had; raises DeviceError when there is none."""
        leases: list[Lease] = []
        try:
            while len(leases) < number:
                leases.append(self.devices.lease())
        except NoDevicesError as error:
            if not leases:
                raise
            log.warning("only %d of %d more workers are started: %s", len(leases), number, error)
        return leases

    def _new_replica(self, lease: Lease) -> Replica:
        number = next(_worker_ids)
        backoff = Backoff(self.config.max_retry_timeout_in_sec)
        return Replica(
            number,
            lease,
            lambda generation: self._make_spec(self.source, lease, number, generation),
            backoff,
            self,
            self.metrics,
        )

    async def _remove(self, replicas: list[Replica], drain_limit: float | None = None) -> None:
        limit = self.config.response_timeout if drain_limit is None else drain_limit
        for replica in replicas:
            self._forget_group(replica)
        await asyncio.gather(*(replica.stop(limit) for replica in replicas))
        for replica in replicas:
            self.replicas.remove(replica)
            self.devices.release(replica.lease)

    def _given_up(self) -> list[Replica]:
        return [replica for replica in self.replicas if replica.state is ReplicaState.FAILED]

    # -- what replicas and groups tell --

    def replica_changed(self, replica: Replica) -> None:
        if replica.state is ReplicaState.READY and replica.group is not None:
            self.capabilities, self.signature = replica.group.capabilities, replica.group.signature
            self.dispatcher.groups.append(replica.group)
        else:
            self.last_end = replica.last_end or self.last_end
            self._forget_ended_groups()
        if replica.state is ReplicaState.FAILED:
            self.devices.release(replica.lease)  # its last process is gone, and it starts no other
        self._judge()

    def group_has_room(self, group: WorkerGroup) -> None:
        self.dispatcher.pump()
        if self.state is ModelState.DRAINING:
            self._changed.set()

    def group_ended(self, group: WorkerGroup) -> None:
        self._forget_ended_groups()
        self._judge()

    def batch_finished(self, size: int, seconds: float) -> None:
        self.dispatcher.policy.finished(size, seconds)
        self.metrics.batch(size, seconds)

    def group_replied(self, group: WorkerGroup) -> None:
        for replica in self.replicas:
            if replica.group is group:
                replica.replied()

    def jobs_returned(self, jobs: list[Job]) -> None:
        self.dispatcher.put_back(jobs)

    def samples_arrived(self, samples: list[MetricSample]) -> None:
        self.metrics.handler_samples(samples)

    def _forget_group(self, replica: Replica) -> None:
        if replica.group in self.dispatcher.groups:
            self.dispatcher.groups.remove(replica.group)

    def _forget_ended_groups(self) -> None:
        groups = self.dispatcher.groups
        groups[:] = [group for group in groups if group.state is GroupState.READY]

    @property
    def busy(self) -> bool:
        """Somebody waits for a job that is queued or running."""
        return bool(len(self.dispatcher.queue)) or any(group.awaited for group in self._groups())

    @property
    def at_rest(self) -> bool:
        """No worker is in a call, for nobody either."""
        return not any(group.busy for group in self._groups())

    def _groups(self) -> list[WorkerGroup]:
        """All that have processes, those that drain too."""
        return [replica.group for replica in self.replicas if replica.group is not None]

    # -- for the scrape --

    @property
    def labels(self) -> tuple[str, str]:
        return self.source.name, self.source.version

    def gauges(self) -> dict[str, float]:
        return {
            "msx_queue_depth": len(self.dispatcher.queue),
            "msx_queue_oldest_seconds": self.dispatcher.queue.oldest_age,
            "msx_requests_in_flight": sum(group.busy for group in self._groups()),
            "msx_workers_wanted": self.min_workers,
            "msx_workers_ready": self.ready_workers,
        }

    def worker_memory(self) -> list[tuple[str, str, int]]:
        groups = [(str(r.number), r.group) for r in self.replicas if r.group is not None]
        return [(worker, str(one.rank), one.process.memory) for worker, group in groups for one in group.ranks]

    # -- state --

    @property
    def ready_workers(self) -> int:
        return len(self.dispatcher.groups)

    @property
    def expecting_workers(self) -> bool:
        return self.dispatcher.expecting_workers

    @property
    def uses_devices(self) -> bool:
        return any(replica.lease.visible_devices is not None for replica in self.replicas)

    @property
    def serving(self) -> bool:
        """Answers requests now; a version without wanted workers is not missing any."""
        return self.state in (ModelState.READY, ModelState.DEGRADED) and (self.ready_workers > 0 or not self.replicas)

    @property
    def healthy(self) -> bool:
        """TorchServe's: no worker of the wanted ones has been given up; one that restarts counts as healthy."""
        kept = sum(replica.state is not ReplicaState.FAILED for replica in self.replicas)
        return self.state is not ModelState.FAILED and kept >= min(self.min_workers, len(self.replicas))

    @property
    def reason(self) -> str:
        """Why it is not READY, in the last worker's words."""
        if self.lost:
            return self.lost
        return "" if self.state is ModelState.READY or self.last_end is None else self.last_end.reason

    def _judge(self) -> None:
        """The state follows from the replicas, until the version is being removed."""
        alive = [r for r in self.replicas if r.state not in (ReplicaState.FAILED, ReplicaState.STOPPED)]
        if self.state not in (ModelState.DRAINING, ModelState.GONE):
            self.dispatcher.expecting_workers = bool(alive)
            self._move(self._state_of(len(alive)))
            self.dispatcher.failure = self.reason if self.state is ModelState.FAILED else ""
            if not alive and len(self.dispatcher.queue):
                self.dispatcher.queue.fail_all(self._failure())
        self._changed.set()

    def _state_of(self, alive: int) -> ModelState:
        wanted, ready = len(self.replicas), self.ready_workers
        if self.lost:
            return ModelState.FAILED
        if ready == wanted:
            self._been_ready = ready > 0
            return ModelState.READY
        if not alive:
            return ModelState.FAILED
        self._been_ready = self._been_ready or ready > 0
        first_start = all(replica.last_end is None for replica in self.replicas) and not self._been_ready
        return ModelState.LOADING if first_start and self.state is not ModelState.DEGRADED else ModelState.DEGRADED

    def _failure(self) -> ServiceError:
        if not self.replicas:
            return ServiceUnavailable(
                f'Model "{self.source.name}" was scaled to 0 workers before the request could run.'
            )
        return self.last_end.error if self.last_end else WorkerDied("No worker is left.")

    def _move(self, state: ModelState) -> None:
        if state is not self.state:
            name, version = self.source.name, self.source.version
            log.info("model %s %s: %s -> %s", name, version, self.state.value, state.value)
            self.state = move(self.state, state)
