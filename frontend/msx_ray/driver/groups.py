"""One reservation in Ray: a placement group, and a holder in each of its bundles. All are detached from the driver."""

from __future__ import annotations

import time
from typing import Any

import ray
from ray import cloudpickle
from ray.util import get_placement_group, placement_group, placement_group_table, remove_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from msx_ray.driver import holder
from msx_ray.messages import Place
from msx_ray.node_check import node_problem
from msx_ray.reservation import CPU, device_in

NAMESPACE = "msx"

GPU = "GPU"
"""Like CPU, Ray takes it by a keyword of its own only."""

MOMENT = 2.0
"""Seconds that Ray takes to grant what there is."""

cloudpickle.register_pickle_by_value(holder)


class Group:
    """Placement group of Ray. Calls may be repeated, never block for long, and raise Ray's errors."""

    def __init__(self, id: str, bundles: list[dict[str, float]], strategy: str) -> None:
        self.id = id
        self.bundles = bundles
        self._group = _found(id) or placement_group(bundles, strategy=strategy, name=id, lifetime="detached")
        self._holders: list[Any] = []
        self._placing: list[Any] = []
        self._holding: list[Any] = []
        self._starting: list[Any] = []
        self.places: list[Place] = []
        self.inhabited = False
        """It has agents, or had."""
        self.pending = ""
        """Reason of its wait that was last reported."""
        self._asked = time.monotonic()

    @classmethod
    def kept(cls, id: str) -> Group | None:
        """The reservation that a driver before this one has made, if all its holders are there."""
        found = _found(id)
        if found is None:
            return None
        made = cls(id, found.bundle_specs, "PACK")
        try:
            made._holders = [ray.get_actor(made._name(index), NAMESPACE) for index in range(len(made.bundles))]
        except ValueError:
            return None
        made.inhabited = True
        made._ask_places()
        return made

    def granted(self) -> bool:
        """Whether its places have just become known."""
        if self.places:
            return False
        if not self._holders:
            if placement_group_table(self._group).get("state") != "CREATED":
                return False
            self._hold()
        if len(ray.wait(self._placing, num_returns=len(self._placing), timeout=0)[0]) < len(self._placing):
            return False
        self.places = [_place(index, told) for index, told in enumerate(ray.get(self._placing))]
        self._watch()
        return True

    def waits(self) -> bool:
        """The cluster has no room for it: not only that Ray takes a moment, or that its holders are being started."""
        return not self.places and not self._holders and time.monotonic() - self._asked > MOMENT

    def start(self, invitation: dict[str, Any]) -> None:
        """Start the agents; `check_agents` tells of one that cannot be started."""
        self.inhabited = True
        self._starting = [
            one.start.remote({**invitation, **_own(place), "resource": device_in(self.bundles[place.bundle])})
            for one, place in zip(self._holders, self.places, strict=True)
        ]

    def check_agents(self) -> None:
        """Raises Ray's error of an agent that could not be started."""
        if self._starting:
            done, self._starting = ray.wait(self._starting, num_returns=len(self._starting), timeout=0)
            ray.get(done)

    def lost(self) -> str:
        """The host of a holder that has ended; "" while all are there."""
        ended, _ = ray.wait(self._holding, num_returns=1, timeout=0) if self._holding else ([], [])
        if not ended:
            return ""
        index = self._holding.index(ended[0])
        return self.places[index].node if self.places else "a node"

    def remove(self) -> None:
        for one in self._holders:
            ray.kill(one, no_restart=True)
        remove_placement_group(self._group)

    def _hold(self) -> None:
        actor = ray.remote(max_restarts=0, max_task_retries=0, max_concurrency=4)(holder.Holder)
        for index, bundle in enumerate(self.bundles):
            made = actor.options(
                name=self._name(index),
                namespace=NAMESPACE,
                lifetime="detached",
                num_cpus=bundle.get(CPU, 0),
                num_gpus=bundle.get(GPU, 0),
                resources={name: amount for name, amount in bundle.items() if name not in (CPU, GPU)},
                scheduling_strategy=PlacementGroupSchedulingStrategy(self._group, placement_group_bundle_index=index),
            ).remote()
            self._holders.append(made)
        self._ask_places()

    def _ask_places(self) -> None:
        pairs = zip(self._holders, self.bundles, strict=True)
        self._placing = [one.place.remote(device_in(bundle)) for one, bundle in pairs]

    def _watch(self) -> None:
        self._holding = [one.hold.remote() for one in self._holders]

    def _name(self, index: int) -> str:
        return f"{self.id}:{index}"


def kept_groups(server: str) -> dict[str, Group]:
    """The reservations of this server that the cluster still has."""
    names = {one["name"].partition(":")[0] for one in ray.util.list_named_actors(all_namespaces=True)}
    found = {name: Group.kept(name) for name in names if name.startswith(f"msx-{server}-")}
    return {name: group for name, group in found.items() if group is not None}


def _found(id: str) -> Any:
    try:
        return get_placement_group(id)
    except ValueError:
        return None


def _own(place: Place) -> dict[str, Any]:
    """Whatever an invitation says of one share alone."""
    return {"share": place.bundle, "devices": place.devices, "node": place.node}


def _place(bundle: int, told: dict[str, Any]) -> Place:
    return Place(bundle, told["node_id"], told["node"], told["address"], tuple(told["devices"]), node_problem(told))
