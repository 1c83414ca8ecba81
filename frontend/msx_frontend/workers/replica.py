"""One worker of a model version: a worker group, and its successor when it has ended."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from enum import Enum
from functools import partial
from typing import Protocol

from msx_core.service_errors import ServiceError
from msx_frontend.devices.lease import Lease
from msx_frontend.management_errors import RequirementsFailed
from msx_frontend.metrics import ModelMetrics
from msx_frontend.resources.shortage import Shortage
from msx_frontend.resources.supply import GroupClaim
from msx_frontend.resources.worker_device import WorkerDevice
from msx_frontend.workers import group_end
from msx_frontend.workers.backoff import Backoff
from msx_frontend.workers.group import GroupEvents, WorkerGroup
from msx_frontend.workers.group_end import GroupEnd
from msx_frontend.workers.group_maker import GroupMaker
from msx_frontend.workers.killed_loads import KilledLoads
from msx_frontend.workers.torchserve_lines import TorchServeLines

log = logging.getLogger("msx.workers")


LEAVE_LIMIT = 10.0
"""Seconds that running work has to end when a device of its worker has become unhealthy."""


class ReplicaState(Enum):
    WAITING = "WAITING"
    """Something that it needs to start is missing. This is neither a failure nor a pause after one."""
    STARTING = "STARTING"
    READY = "READY"
    RESTARTING = "RESTARTING"
    FAILED = "FAILED"
    STOPPED = "STOPPED"


class ReplicaOwner(GroupEvents, Protocol):
    def replica_changed(self, replica: Replica) -> None: ...

    def replica_leaves(self, replica: Replica) -> None:
        """It was told to stop: it gets no more jobs."""

    def refusal(self, group: WorkerGroup) -> str:
        """Why what this group has loaded may not serve; "" if it may."""


class Replica:
    """Keeps one group alive, with back-off, until it is stopped or gives up."""

    def __init__(
        self,
        number: int,
        claim: GroupClaim,
        recipe: GroupMaker,
        backoff: Backoff,
        owner: ReplicaOwner,
        metrics: ModelMetrics,
        kills: KilledLoads | None = None,
    ) -> None:
        """`kills` are counted for all workers of the version."""
        self.number = number
        self._claim = claim
        self._recipe = recipe
        self._backoff = backoff
        self._owner = owner
        self._metrics = metrics
        self._kills = kills or KilledLoads()
        self.state = ReplicaState.WAITING if claim.shortage else ReplicaState.STARTING
        self.group: WorkerGroup | None = None
        self.last_end: GroupEnd | None = None
        self.unloaded: GroupEnd | None = None
        """Why its last try to load the model failed; None once one has succeeded, whatever came after."""
        self.excused = False
        """It was killed while it loaded, which is no failure yet: it starts again at once."""
        self.generation = 0
        self._loaded = False
        self._lines = TorchServeLines(number)
        self._stopping = asyncio.Event()
        self._leaving_devices: asyncio.Task[None] | None = None
        claim.attach(self)
        self._log_shortage()
        self._task = asyncio.create_task(self._supervise(), name=f"replica-{number}")

    @property
    def lease(self) -> Lease | None:
        """Its devices; None while it waits for them, and after it has released them."""
        return self._claim.lease

    @property
    def devices(self) -> Sequence[WorkerDevice]:
        """Its devices on this machine, as they were read last."""
        return self._claim.devices([rank.pid for rank in self.group.ranks] if self.group is not None else ())

    @property
    def shortage(self) -> Shortage | None:
        """Shortage that it waits for."""
        return self._claim.shortage

    @property
    def phase(self) -> str:
        """Phase of its group while it loads, or of its claim while it waits."""
        return self.group.phase if self.group is not None else self._claim.phase

    def release(self) -> None:
        """Release its devices, when its last process is gone and it will not start another. Idempotent."""
        self._claim.release()

    @property
    def leaving(self) -> bool:
        """It was told to stop: it does not count as a worker any more."""
        return self._stopping.is_set()

    def leave(self) -> None:
        """Called before `stop`: it gets no more jobs."""
        self._stopping.set()
        self._owner.replica_leaves(self)

    async def stop(self, drain_limit: float | None) -> None:
        """Let running work finish for `drain_limit` seconds, or as long as it takes (None); returns when no process is
        left."""
        self._stopping.set()
        if self.group is not None:
            await self.group.drain(drain_limit)
        await asyncio.shield(self._task)  # a caller that is cancelled must not end it: another one may wait, too

    def replied(self) -> None:
        """A good reply: earlier failures do not count any more."""
        self._backoff.reset()

    async def _supervise(self) -> None:
        while not self._stopping.is_set():
            self._loaded = False
            end = await self._next_end()
            self.last_end, self.group = end, None
            if self._claim.revoked and not self._stopping.is_set():
                self._start_elsewhere()
                continue
            self._judge_load(end)
            if self._stopping.is_set() or not await self._may_restart(end):
                break
        if self.state is not ReplicaState.FAILED:
            self._move(ReplicaState.STOPPED)

    def _judge_load(self, end: GroupEnd) -> None:
        """A load that was stopped has not failed, nor one of the first that were killed."""
        tried = not self._loaded and not self._stopping.is_set()
        self.excused = tried and self._kills.excuses(end)
        if tried and not self.excused:
            self.unloaded = end

    async def _next_end(self) -> GroupEnd:
        """Any error while a generation starts counts as its failure; this task goes on."""
        try:
            self._claim.renew()
            await self._unless_stopping(partial(self._uncounted, self._claim.satisfied))
            await self._unless_stopping(self._recipe.prepare)
            if not self._runs():
                await self._unless_stopping(partial(self._uncounted, self._claim.turn))
            if self._claim.revoked:
                return group_end.device_lost(self._claim.revoked)
            return group_end.asked_to_stop() if self._stopping.is_set() else await self._one_generation()
        except RequirementsFailed as error:
            return group_end.requirements_failed(error)
        except ServiceError as error:
            return group_end.not_prepared(error)
        except Exception as error:
            log.exception("worker %d could not be started", self.number)
            if self.group is not None:
                await self.group.drain(0)
            return group_end.not_started(error)
        finally:
            self._claim.started()

    def _runs(self) -> bool:
        """A group of a server before this one goes on: that is no start which waits for others."""
        return self.lease is not None and self._recipe.runs(self.lease, self.number, self.generation + 1)

    async def _unless_stopping(self, call: Callable[[], Awaitable[None]]) -> None:
        """Await the call, unless the replica is stopped first."""
        if self._stopping.is_set():
            return
        awaited, stopping = asyncio.ensure_future(call()), asyncio.ensure_future(self._stopping.wait())
        try:
            await asyncio.wait({awaited, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if awaited.done():
                awaited.result()
        finally:
            awaited.cancel()
            stopping.cancel()

    async def _uncounted(self, wait: Callable[[], Awaitable[None]]) -> None:
        """Waiting for what other workers have is not a failure: maxRetryTimeoutInSec does not run meanwhile."""
        self._backoff.pause()
        try:
            await wait()
        finally:
            self._backoff.resume()

    def claim_changed(self) -> None:
        self._log_shortage()
        if self.shortage is not None:
            self._move(ReplicaState.WAITING)
        elif self.state is ReplicaState.WAITING:
            log.info("worker %d waits no longer", self.number)
            self._move(ReplicaState.RESTARTING if self.last_end else ReplicaState.STARTING)

    def claim_withdrawn(self) -> None:
        """One of them is unhealthy: running work may end, then the group does."""
        if self.group is not None:
            drain = self.group.drain(LEAVE_LIMIT, group_end.device_lost(self._claim.revoked))
            self._leaving_devices = asyncio.create_task(drain, name=f"replica-{self.number}-leaves-devices")

    def _start_elsewhere(self) -> None:
        """Neither a failure of the worker nor a reason to pause."""
        log.warning("worker %d leaves its devices: %s", self.number, self._claim.revoked)
        self._metrics.restarts.inc()
        self._move(ReplicaState.RESTARTING)

    def own_memory(self) -> int:
        return self.group.own_memory if self.group is not None else 0

    def _log_shortage(self) -> None:
        if (shortage := self.shortage) is not None:
            log.warning("worker %d waits for %s: %s", self.number, shortage.resource, shortage.reason)

    async def _one_generation(self) -> GroupEnd:
        assert self.lease is not None
        self.generation += 1
        spec = self._recipe.spec(self.lease, self.number, self.generation)
        group = self.group = WorkerGroup(spec, self._recipe.launcher, self._owner)
        self._lines.started(group.labels)
        end = await group.start()
        self._claim.started()
        if end is None and (refused := self._owner.refusal(group)):
            await group.drain(0, group_end.refused(refused))
        elif end is None and not self._stopping.is_set():
            log.info("worker %d is ready after %.2f s", self.number, group.load_seconds, extra=group.labels)
            self._lines.loaded()
            self._backoff.ready()
            self._loaded, self.unloaded = True, None
            self._kills.loaded()
            self._metrics.worker_loaded(self.number, group.load_seconds)
            self._move(ReplicaState.READY)
            self._owner.group_has_room(group.runner)
        end = await group.wait_ended()
        self._lines.disconnected(end, loaded=self._loaded)
        return end

    async def _may_restart(self, end: GroupEnd) -> bool:
        log.error("worker %d ended: %s", self.number, end.reason + ("\n" + end.traceback if end.traceback else ""))
        self._lines.failed(end)
        delay = self._backoff.failed()
        if delay is None:
            log.error("worker %d is given up: it failed for longer than maxRetryTimeoutInSec", self.number)
            if self.excused:
                self.excused, self.unloaded = False, end
            self._move(ReplicaState.FAILED)
            return False
        if self.excused:
            log.warning("worker %d was killed while it loaded: it starts again at once", self.number)
            delay = 0
        self._lines.retries(delay)
        self._metrics.restarts.inc()
        self._move(ReplicaState.RESTARTING)
        try:
            await asyncio.wait_for(self._stopping.wait(), delay)
        except asyncio.TimeoutError:
            return True
        return False

    def _move(self, state: ReplicaState) -> None:
        self.state = state
        self._owner.replica_changed(self)
