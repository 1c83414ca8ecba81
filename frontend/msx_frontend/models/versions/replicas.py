"""The workers of a model version: how many there are, and on which devices."""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import count

from msx_core.config import ModelConfig
from msx_frontend.metrics import ModelMetrics
from msx_frontend.models.versions.group_recipe import GroupRecipe
from msx_frontend.queueing.batch_target import BatchTarget
from msx_frontend.resources.supply import VersionSupply
from msx_frontend.workers.backoff import Backoff
from msx_frontend.workers.group import WorkerGroup
from msx_frontend.workers.killed_loads import KilledLoads
from msx_frontend.workers.replica import Replica, ReplicaOwner, ReplicaState

log = logging.getLogger("msx.models")

LOOK_EVERY = 0.1
"""Seconds between two looks whether a worker serves that replaces another one."""
FIRST_WORKER_ID = 9000
"""TorchServe numbers its workers by their ports, from 9000 on."""

_worker_ids = count(FIRST_WORKER_ID)


class Replicas:
    """Starts and removes the workers of one version. `owner` is notified of their changes."""

    def __init__(
        self,
        config: ModelConfig,
        labels: tuple[str, str],
        resources: VersionSupply,
        recipe: GroupRecipe,
        metrics: ModelMetrics,
        owner: ReplicaOwner,
        judge: Callable[[], None],
    ) -> None:
        """`judge` is called when the number of workers has changed."""
        self._config = config
        self._labels = labels
        self._resources = resources
        self._recipe = recipe
        self._metrics = metrics
        self._owner = owner
        self._judge = judge
        self.all: list[Replica] = []
        self._places: dict[Replica, int] = {}
        self._kills = KilledLoads()
        self.least = self.most = self.asked = 0
        self._scaling = asyncio.Lock()
        self._dismissals: set[asyncio.Task[None]] = set()

    async def scale(self, least: int, most: int, drain_limit: float) -> None:
        """Start workers up to `least`, and remove those above `most`: first those that wait, then second workers of a
        device (`workersPerDevice`), then the newest.

        The number of groups is limited by the devices; the caller has checked that one group fits.
        """
        async with self._scaling:
            self.asked = least
            given_up = [replica for replica in self.kept if replica.state is ReplicaState.FAILED]
            await self._remove(given_up, drain_limit)
            self._warn_of_cap(most)
            least, most = self.least, self.most = capped(self._resources, least, most)
            self.all += [self._new_replica() for _ in range(least - len(self.kept))]
            crowded = _crowding(self.kept)
            surplus = sorted(self.kept, key=lambda one: (_waits(one), crowded[one]))[most:]
            for replica in surplus:
                replica.leave()
            self._judge()
            await self._remove(surplus, drain_limit)
            self._judge()

    def resize(self, wanted: int, bound: Callable[[BatchTarget], bool]) -> None:
        """Start or remove workers up to `wanted`, at once. Requests of those that are removed run to their end.

        One worker waits for resources at most, besides those of the minimum: more of them would only wait, too. Those
        that are `bound`, by sequences that are open, stay.
        """
        kept, waiting = self.kept, self._waiting
        if waiting:
            wanted = min(wanted, max(self.least, len(kept) - len(waiting) + 1))
        if len(kept) > wanted:
            free = [one for one in kept if one.group is None or not bound(one.group.runner)]
            crowded = _crowding(kept)
            self.dismiss(sorted(free, key=lambda one: _last_to_go(one, crowded[one]))[: len(kept) - wanted])
        elif len(kept) < wanted and not waiting:
            self._add(wanted - len(kept))

    def dismiss(self, replicas: Sequence[Replica]) -> None:
        """They get no more requests; those that they have run to their end."""
        for replica in replicas:
            replica.leave()
        if replicas:
            self._judge()
            task = asyncio.create_task(self._dismissed(replicas), name="dismiss-workers")
            self._dismissals.add(task)
            task.add_done_callback(self._dismissals.discard)

    async def renew(self, old: Replica) -> bool:
        """Start another worker in its place, which serves before it leaves; where resources are not enough for both, it
        leaves first. Returns whether the other one serves; else the old one stays, unless it has left."""
        if old not in self.kept:
            return True
        new = self._new_replica(self._places[old])
        self.all.append(new)
        if new.state is ReplicaState.WAITING:
            old.leave()
            await self._dismissed([old])
        while new.state not in (ReplicaState.READY, ReplicaState.FAILED, ReplicaState.STOPPED):  # noqa: ASYNC110
            await asyncio.sleep(LOOK_EVERY)
        serves = new.state is ReplicaState.READY
        await self._dismissed([old if serves else new] if old in self.all else [])
        return serves

    async def _dismissed(self, replicas: Sequence[Replica]) -> None:
        await self._remove(replicas, None)
        self._judge()

    def _add(self, count: int) -> None:
        for _ in range(count):
            self.all.append(self._new_replica())
            if self._waiting:
                break
        self._judge()

    def room(self, since: float) -> int | None:
        """See `VersionSupply.room`."""
        return self._resources.room(since)

    @property
    def kept(self) -> list[Replica]:
        """The wanted ones, without those that are stopping."""
        return [replica for replica in self.all if not replica.leaving]

    @property
    def _waiting(self) -> list[Replica]:
        return [replica for replica in self.kept if replica.state is ReplicaState.WAITING]

    async def remove_all(self, drain_limit: float) -> None:
        """Returns when no process is left."""
        async with self._scaling:
            await self._remove(list(self.all), drain_limit)

    @property
    def groups(self) -> list[WorkerGroup]:
        """All groups that have processes, also those that drain."""
        return [replica.group for replica in self.all if replica.group is not None]

    def memory(self) -> Iterator[tuple[str, str, int]]:
        """Worker, rank, and resident bytes of each process."""
        for replica in self.all:
            for one in replica.group.ranks if replica.group is not None else ():
                yield str(replica.number), str(one.rank), one.status.memory

    def device_memory(self) -> Iterator[tuple[str, str, int]]:
        """Worker, device, and bytes that its processes have there, where the driver tells."""
        for replica in self.all:
            for one in replica.devices:
                if one.memory is not None:
                    yield str(replica.number), str(one.number), one.memory

    def _warn_of_cap(self, most: int) -> None:
        capacity = self._resources.capacity or 0
        if 0 < capacity < most:
            size, name = self._config.layout.devices or 1, " ".join(self._labels)
            each = f"workersPerDevice: {per}" if (per := self._config.workers_per_device) else f"{size} devices each"
            log.warning("model %s: the devices are enough for %d workers of %s, not for %d", name, capacity, each, most)

    def _sibling_memory(self) -> int | None:
        """The memory of the worker that has served for the longest time."""
        ready = (replica.group for replica in self.all if replica.state is ReplicaState.READY and not replica.leaving)
        oldest = next(ready, None)
        return oldest.own_memory if oldest is not None else None

    def _new_replica(self, place: int | None = None) -> Replica:
        """`place`: None for the first one that is free."""
        if place is None:
            place = next(one for one in count() if one not in self._places.values())
        replica = Replica(
            next(_worker_ids),
            self._resources.claim(self._sibling_memory),
            self._recipe.at(place),
            Backoff(self._config.max_retry_timeout_in_sec),
            self._owner,
            self._metrics,
            self._kills,
        )
        self._places[replica] = place
        return replica

    async def _remove(self, replicas: Sequence[Replica], drain_limit: float | None) -> None:
        """Two calls may remove the same ones."""
        for replica in replicas:
            if not replica.leaving:
                replica.leave()
        await asyncio.gather(*(replica.stop(drain_limit) for replica in replicas))
        for replica in replicas:
            if replica in self._places:
                self.all.remove(replica)
                del self._places[replica]
                replica.release()


def capped(resources: VersionSupply, least: int, most: int) -> tuple[int, int]:
    """As far as the devices go. TorchServe's rule: the reply to the call states the wanted number, the describe API the
    real one."""
    capacity = resources.capacity or 0
    return (min(least, capacity), capacity) if 0 < capacity < most else (least, most)


def _waits(replica: Replica) -> bool:
    return replica.state is ReplicaState.WAITING


def _crowding(replicas: Sequence[Replica]) -> dict[Replica, int]:
    """How many older ones, which come first, are on the device of each; 0 without `workersPerDevice`, as the newest
    leaves first in TorchServe."""
    found, on = {}, Counter[int]()
    for replica in replicas:
        lease = replica.lease
        devices = lease.numbers if lease is not None and lease.terms.most is not None else ()
        found[replica] = max((on[device] for device in devices), default=0)
        on.update(devices)
    return found


def _last_to_go(replica: Replica, crowding: int) -> tuple[int, int, int]:
    """Order in which replicas stop: those that serve are the last, of these those that were first on their devices,
    and the oldest of them the very last."""
    order = (ReplicaState.FAILED, ReplicaState.WAITING, ReplicaState.RESTARTING, ReplicaState.STARTING)
    at = order.index(replica.state) if replica.state in order else len(order)
    return at, -crowding, -replica.number
