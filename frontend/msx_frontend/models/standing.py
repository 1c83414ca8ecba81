"""How a model version stands: its state, as it follows from its replicas, and why it is so."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from msx_frontend.errors import ServiceError, ServiceUnavailable, WorkerDied
from msx_frontend.models.states import ModelState, move
from msx_frontend.workers.endings import GroupEnd
from msx_frontend.workers.replica import Replica, ReplicaState

log = logging.getLogger("msx.models")


class Standing:
    """`changed` is set whenever something may have become different."""

    def __init__(self, name: str, version: str) -> None:
        self._name, self._version = name, version
        self.state = ModelState.READY
        self.leaving = False
        """It is being removed: its state follows from nothing else any more."""
        self.last_end: GroupEnd | None = None
        self.lost = ""
        """Why its archive cannot be had: it is known, and serves nothing until it is registered again."""
        self.changed = asyncio.Event()
        self._been_ready = False

    @property
    def reason(self) -> str:
        """Why it is not READY, in the last worker's words."""
        if self.lost:
            return self.lost
        return "" if self.state is ModelState.READY or self.last_end is None else self.last_end.reason

    @property
    def failure(self) -> str:
        """Why there will be no workers; empty while there may be some."""
        return self.reason if self.state is ModelState.FAILED else ""

    def judge(self, replicas: Sequence[Replica], ready: int) -> None:
        self.move(self._state_of(replicas, ready))

    def error(self, wanted: int) -> ServiceError:
        """What those hear who wait for a version without workers."""
        if not wanted:
            return ServiceUnavailable(f'Model "{self._name}" was scaled to 0 workers before the request could run.')
        return self.last_end.error if self.last_end else WorkerDied("No worker is left.")

    def move(self, state: ModelState) -> None:
        if state is not self.state:
            log.info("model %s %s: %s -> %s", self._name, self._version, self.state.value, state.value)
            self.state = move(self.state, state)
            self.leaving = state in (ModelState.DRAINING, ModelState.GONE)

    def _state_of(self, replicas: Sequence[Replica], ready: int) -> ModelState:
        if self.lost:
            return ModelState.FAILED
        if ready == len(replicas):
            self._been_ready = ready > 0
            return ModelState.READY
        if not alive(replicas):
            return ModelState.FAILED
        self._been_ready = self._been_ready or ready > 0
        first_start = all(replica.last_end is None for replica in replicas) and not self._been_ready
        return ModelState.LOADING if first_start and self.state is not ModelState.DEGRADED else ModelState.DEGRADED


def alive(replicas: Sequence[Replica]) -> bool:
    """Some serve, or may come to."""
    return any(replica.state not in (ReplicaState.FAILED, ReplicaState.STOPPED) for replica in replicas)
