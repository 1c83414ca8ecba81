"""The workers of a model version: how many there are, and whether they serve."""

import logging
from typing import Any

from msx_frontend.management_errors import WorkersNotStarted
from msx_frontend.models.versions.group_recipe import GroupRecipe
from msx_frontend.models.versions.states import ModelState
from msx_frontend.models.versions.supervisor import Supervisor
from msx_frontend.resources.supply import VersionSupply
from msx_frontend.workers.group_end import GroupEnd
from msx_frontend.workers.group_state import GroupState
from msx_frontend.workers.replica import Replica, ReplicaState

log = logging.getLogger("msx.models")


class VersionWorkers:
    """The workers of a version without stages."""

    def __init__(self, supervisor: Supervisor, recipe: GroupRecipe, resources: VersionSupply) -> None:
        self._supervisor, self._source, self._resources = supervisor, recipe.source, resources
        self._environment = recipe.environment
        self.labels = recipe.source.name, recipe.source.version
        self._replicas, self.autoscaler = supervisor.replicas, supervisor.autoscaler
        self._dispatcher, self.status = supervisor.dispatcher, supervisor.status
        self._go_on = False
        """Some are of a server before this one."""

    @property
    def all(self) -> list[Replica]:
        """Also those that are stopping."""
        return self._replicas.all

    @property
    def kept(self) -> list[Replica]:
        """The wanted replicas, without those that are stopping."""
        return self._replicas.kept

    @property
    def least(self) -> int:
        return self._replicas.least

    @property
    def asked(self) -> int:
        """The least before the number of devices limited it."""
        return self._replicas.asked

    @property
    def most(self) -> int:
        return self._replicas.most

    @property
    def ready(self) -> int:
        return len(self._dispatcher.groups)

    @property
    def waiting(self) -> int:
        """Workers that wait for a resource before they can start."""
        return sum(replica.state is ReplicaState.WAITING for replica in self.kept)

    @property
    def wanted(self) -> bool:
        return self.least > 0 or (bool(self.kept) and not self.on_demand)

    @property
    def at_rest(self) -> bool:
        """No worker is in a call, not even in one whose client has left."""
        return not any(group.runner.busy for group in self._replicas.groups)

    @property
    def on_demand(self) -> bool:
        """There may be none: the first request starts one, and waits for it."""
        return self.autoscaler.on_demand

    @property
    def expected(self) -> bool:
        """Requests are accepted: a worker serves, or may serve soon."""
        return self._dispatcher.may_serve

    @property
    def refusal(self) -> str:
        """The reason for clients why requests are refused; "" while a worker serves, or none is wanted."""
        return "" if self.ready else self._dispatcher.refusal

    @property
    def answer(self) -> bool:
        """A request that comes now is answered: by a worker that is ready, or by one that it starts."""
        if self.status.state is ModelState.ASLEEP:
            return False
        return self.ready > 0 or (self.on_demand and self.expected)

    @property
    def use_devices(self) -> bool:
        return bool(self.all) and self._resources.has_devices

    @property
    def device_type(self) -> str:
        """The kind of their devices, or "cpu", also while there are none."""
        return self._resources.device_type if self.all else "cpu"

    @property
    def follow_load(self) -> bool:
        return self.autoscaler.on

    def describe(self) -> dict[str, Any]:
        """How they follow the load; empty where they do not."""
        return self.autoscaler.describe()

    def turn_autoscaling(self, on: bool) -> None:
        """Takes effect when the bounds are set, by `scale`."""
        self.autoscaler.turn(on)

    async def scale(self, least: int, most: int) -> None:
        """See `Replicas.scale`. Raises WorkersNotStarted for a version that is lost."""
        if self.status.lost and least:
            raise WorkersNotStarted(self._source.name, self._source.version, self.status.lost)
        await self._replicas.scale(least, most, self._source.config.response_timeout)
        self.autoscaler.bounded()
        self._supervisor.judge()

    @property
    def adopts(self) -> bool:
        """Some may be taken over just now from a server before this one."""
        return self._go_on and any(
            _is_adopted(replica) for replica in self.kept if replica.state is ReplicaState.STARTING
        )

    async def renew(self) -> None:
        """Replace those that are old, one after the other, until one does not serve."""
        for replica in self.kept:
            if replica.group is not None and replica.group.ranks.leader.old:
                log.info("worker %d is replaced", replica.number)
                if not await self._replicas.renew(replica):
                    log.error("model %s %s: a worker that replaces another one does not serve", *self.labels)
                    return

    def go_on_with(self, count: int) -> None:
        """So many run already, of a server before this one; their number is taken where it follows the load."""
        self._go_on = count > 0
        if self.follow_load:
            self._replicas.resize(max(self.least, min(count, self.most)), lambda group: False)

    async def settled(self) -> GroupEnd | None:
        """Wait until all are ready or wait for resources: returns None. Returns the end of a worker whose first load
        failed; one that was killed and starts again at once has not.

        Raises InvalidModel or RequirementsFailed when there is none and none could start: see `Environment.ready`.
        """
        if not self.all:
            await self._environment.ready()
        while True:
            ended = (r.last_end for r in self.all if r.state is not ReplicaState.READY and not r.excused)
            if failed := next((end for end in ended if end is not None and not end.elsewhere), None):
                return failed
            if all(replica.state in (ReplicaState.READY, ReplicaState.WAITING) for replica in self.all):
                return None
            await self.status.wait()


def _is_adopted(replica: Replica) -> bool:
    """It starts, and it is not known yet that it has to load its model."""
    group = replica.group
    return group is None or group.state is GroupState.STARTING or group.ranks.are_taken_over
