"""The status of a model version: its state, which follows from its replicas, and the reason for it."""

import asyncio
import logging
from collections.abc import Sequence

from msx_core.service_errors import ServiceError, ServiceUnavailable
from msx_frontend.models.versions.states import ModelState, move
from msx_frontend.public_text import public_text
from msx_frontend.resources.shortage import Shortage
from msx_frontend.workers.group_end import GroupEnd
from msx_frontend.workers.replica import Replica, ReplicaState

log = logging.getLogger("msx.models")


class CommonStatus:
    """The status of any version. `changed` is set whenever it may have changed."""

    def __init__(self, name: str, version: str) -> None:
        self._name = name
        self._version = version
        self.state = ModelState.READY
        self.leaving = False
        """The version is being removed: workers no longer change its state."""
        self.lost = ""
        """Why its archive is missing; "" if it is there. The version serves nothing until it is registered again."""
        self.changed = asyncio.Event()

    async def wait(self) -> None:
        """Wait until it may have changed."""
        self.changed.clear()
        await self.changed.wait()

    def move(self, state: ModelState) -> None:
        if state is not self.state:
            log.info("model %s %s: %s -> %s", self._name, self._version, self.state.value, state.value)
            self.state = move(self.state, state)
            self.leaving = state in (ModelState.DRAINING, ModelState.GONE)


class VersionStatus(CommonStatus):
    """The status of a version that has workers of its own."""

    def __init__(self, name: str, version: str) -> None:
        super().__init__(name, version)
        self.last_end: GroupEnd | None = None
        self.served = False
        """A worker has been ready once."""
        self._waits: Replica | None = None
        """The first of its workers that waits for a resource."""
        self._unloaded: GroupEnd | None = None
        """The end of the last worker that failed to load; None once a worker has loaded."""
        self._been_ready = False

    @property
    def shortage(self) -> Shortage | None:
        """The resource that its workers wait for now."""
        return self._waits.shortage if self._waits is not None else None

    @property
    def reason(self) -> str:
        """Why it is not READY: the missing resource, or the reason of the last worker."""
        if self.lost:
            return self.lost
        if self.shortage is not None:
            return f"{self.shortage.reason}."
        return "" if self.state is ModelState.READY or self.last_end is None else self.last_end.reason

    def replica_changed(self, replica: Replica) -> None:
        """The replica has loaded the model, failed to load it, or ended."""
        if replica.state is ReplicaState.READY:
            self._unloaded, self.served = None, True
        else:
            self.last_end = replica.last_end or self.last_end
            if replica.state is not ReplicaState.STOPPED:
                self._unloaded = replica.unloaded or self._unloaded

    def forget_failed_load(self) -> None:
        """The worker that failed is gone, and no other tries it again by itself."""
        self._unloaded = None

    def judge(self, replicas: Sequence[Replica], ready: int, asleep: bool = False) -> None:
        self._waits = next((one for one in replicas if one.state is ReplicaState.WAITING), None)
        state = self._state_of(replicas, ready)
        self.move(ModelState.ASLEEP if asleep and state is ModelState.READY else state)

    def refusal(self, replicas: Sequence[Replica]) -> str:
        """One line for clients while no worker is ready; "" where a worker may soon be ready."""
        why = self._why_none(replicas)
        return f'Model "{self._name}" has no worker to serve inference request: {why}' if why else ""

    def error(self, refusal: str) -> ServiceError:
        """The error of requests that waited in the queue."""
        gone = f'Model "{self._name}" was scaled to 0 workers before the request could run.'
        return ServiceUnavailable(refusal or gone)

    def _why_none(self, replicas: Sequence[Replica]) -> str:
        if self.lost:
            return public_text(self.lost)
        if not replicas:
            return ""  # none is wanted: the dispatcher has TorchServe's words for it
        if self.shortage is not None and not coming(replicas):
            return f"it waits for {self.shortage.resource}: {public_text(self.shortage.reason)}"
        if not alive(replicas):
            last = self.last_end.public_reason if self.last_end else "no worker is left"
            return f"it was given up after maxRetryTimeoutInSec, until it is scaled or registered again: {last}"
        if self._unloaded is not None and not any(map(_proven, replicas)):
            return f"its last load failed, and it is tried again: {self._unloaded.public_reason}"
        return ""

    def _state_of(self, replicas: Sequence[Replica], ready: int) -> ModelState:
        if self.lost:
            return ModelState.FAILED
        if ready == len(replicas):
            self._been_ready = ready > 0
            return ModelState.READY
        if not coming(replicas):
            return ModelState.WAITING if self.shortage else ModelState.FAILED
        self._been_ready = self._been_ready or ready > 0
        first_start = all(replica.last_end is None for replica in replicas) and not self._been_ready
        return ModelState.LOADING if first_start and self.state is not ModelState.DEGRADED else ModelState.DEGRADED


def _proven(replica: Replica) -> bool:
    """It serves, or has served, so that its successor will probably serve, too."""
    return replica.state in (ReplicaState.READY, ReplicaState.RESTARTING) and replica.unloaded is None


def alive(replicas: Sequence[Replica]) -> bool:
    """Some replicas serve, or may serve later."""
    return any(replica.state not in (ReplicaState.FAILED, ReplicaState.STOPPED) for replica in replicas)


def coming(replicas: Sequence[Replica]) -> bool:
    """Some replicas serve, or are starting."""
    away = (ReplicaState.WAITING, ReplicaState.FAILED, ReplicaState.STOPPED)
    return any(replica.state not in away for replica in replicas)
