"""The workers of a model version: how many there are, and on which devices."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from itertools import count

from msx_frontend.devices.pool import Lease, ModelDevices, NoDevicesError
from msx_frontend.metrics import ModelMetrics
from msx_frontend.workers.backoff import Backoff
from msx_frontend.workers.group import GroupSpec, WorkerGroup
from msx_frontend.workers.replica import Replica, ReplicaOwner, ReplicaState
from msx_sdk.config import ModelConfig

log = logging.getLogger("msx.models")

FIRST_WORKER_ID = 9000
"""TorchServe numbers its workers by their ports, from 9000 on."""

_worker_ids = count(FIRST_WORKER_ID)

MakeSpec = Callable[[Lease, int, int], GroupSpec]
"""What a worker is started from, by its lease, its number and its generation."""


class Replicas:
    """Leases the devices of one version, and starts and removes its workers. `owner` is told what becomes of them."""

    def __init__(
        self,
        config: ModelConfig,
        labels: tuple[str, str],
        devices: ModelDevices,
        make_spec: MakeSpec,
        metrics: ModelMetrics,
        owner: ReplicaOwner,
        judge: Callable[[], None],
        prepare: Callable[[], Awaitable[None]],
    ) -> None:
        self._prepare = prepare
        self._config, self._labels, self._devices = config, labels, devices
        self._make_spec, self._metrics, self._owner, self._judge = make_spec, metrics, owner, judge
        self.all: list[Replica] = []
        self.least = self.most = self.asked = 0
        self._scaling = asyncio.Lock()

    async def scale(self, least: int, most: int, drain_limit: float) -> None:
        """Start workers up to `least`, remove those above `most` (the newest first).

        Where parallel groups own devices, no more than fit on them. Raises DeviceError when no other one fits.
        """
        async with self._scaling:
            self.asked = least
            given_up = [replica for replica in self.all if replica.state is ReplicaState.FAILED]
            await self._remove(given_up, drain_limit)
            least, most = self._capped(least, most)
            leases = self._lease_devices(least - len(self.all))
            self.least, self.most = min(least, len(self.all) + len(leases)), most
            self.all += [self._new_replica(lease) for lease in leases]
            surplus = self.all[most:]
            for replica in surplus:
                replica.leave()
            self._judge()
            await self._remove(surplus, drain_limit)
            self._judge()

    async def remove_all(self, drain_limit: float) -> None:
        """Returns when no process is left."""
        async with self._scaling:
            await self._remove(list(self.all), drain_limit)

    @property
    def groups(self) -> list[WorkerGroup]:
        """All that have processes, those that drain too."""
        return [replica.group for replica in self.all if replica.group is not None]

    def memory(self) -> Iterator[tuple[str, str, int]]:
        """Worker, rank, and resident bytes of each process."""
        for replica in self.all:
            for one in replica.group.ranks if replica.group is not None else ():
                yield str(replica.number), str(one.rank), one.process.memory

    def _capped(self, least: int, most: int) -> tuple[int, int]:
        """TorchServe's rule; the caller's reply states what was asked for, describe what there is."""
        capacity = self._devices.capacity
        if not capacity or most <= capacity:
            return least, most
        size, name = self._config.layout.devices, " ".join(self._labels)
        log.warning("model %s: %d workers of %d devices each fit, not %d", name, capacity, size, most)
        return min(least, capacity), capacity

    def _lease_devices(self, number: int) -> list[Lease]:
        """As many as are to be had; raises DeviceError when there is none."""
        leases: list[Lease] = []
        try:
            while len(leases) < number:
                leases.append(self._devices.lease())
        except NoDevicesError as error:
            if not leases:
                raise
            log.warning("only %d of %d more workers are started: %s", len(leases), number, error)
        return leases

    def _new_replica(self, lease: Lease) -> Replica:
        number = next(_worker_ids)
        backoff = Backoff(self._config.max_retry_timeout_in_sec)
        make_spec = self._make_spec
        return Replica(
            number,
            lease,
            lambda generation: make_spec(lease, number, generation),
            backoff,
            self._owner,
            self._metrics,
            self._prepare,
        )

    async def _remove(self, replicas: list[Replica], drain_limit: float) -> None:
        for replica in replicas:
            if not replica.leaving:
                replica.leave()
        await asyncio.gather(*(replica.stop(drain_limit) for replica in replicas))
        for replica in replicas:
            self.all.remove(replica)
            self._devices.release(replica.lease)
