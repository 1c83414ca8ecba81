"""The resources of worker groups in a cluster, in the words of this machine's (`resources.supply`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msx_core.config import ModelConfig
from msx_frontend.plugins.accelerators import accelerator_of
from msx_frontend.plugins.launchers import Figure, Sibling, UnhealthyDevice
from msx_ray.bundles import device_of, kind_of
from msx_ray.claims import ClusterClaim
from msx_ray.cluster import Cluster
from msx_ray.reservation import CPU


class ClusterResources:
    """Ray decides who gets what, and in which order. `claims` are those of groups that run or wait."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.claims: list[ClusterClaim] = []
        cluster.attach(self)

    def of(self, model_key: str, config: ModelConfig) -> VersionInCluster:
        return VersionInCluster(self, model_key, config)

    def claim(self, model_key: str, config: ModelConfig) -> ClusterClaim:
        claim = ClusterClaim(self.cluster, model_key, config, self._released)
        self.claims.append(claim)
        return claim

    def _released(self, claim: ClusterClaim) -> None:
        if claim in self.claims:
            self.claims.remove(claim)

    def figures(self) -> Iterator[Figure]:
        """The gauges of the cluster."""
        nodes = [node for node in self.cluster.nodes if node.alive]
        yield "msx_cluster_up", (), float(not self.cluster.problem)
        yield "msx_cluster_nodes", (), float(len(nodes))
        device = kind_of(nodes)
        yield "msx_cluster_devices", (), _devices(device, (node.resources for node in nodes))
        yield "msx_cluster_devices_free", (), _devices(device, (node.free for node in nodes))
        for claim in self.claims:
            yield from claim.ranks()

    def cluster_changed(self) -> None:
        for claim in list(self.claims):
            claim.look()


class VersionInCluster:
    """See `VersionSupply`. Nodes may join at any time: nothing is refused because the cluster is too small now."""

    def __init__(self, resources: ClusterResources, model_key: str, config: ModelConfig) -> None:
        self._resources, self._key, self._config = resources, model_key, config

    def claim(self, sibling: Sibling) -> ClusterClaim:
        return self._resources.claim(self._key, self._config)

    def check(self, workers: int) -> None:
        """Any number may wait."""

    def forget(self) -> None:
        """Ray keeps no turns of a model."""

    @property
    def capacity(self) -> int | None:
        """`deviceIds` counts: so many devices and no more."""
        ids = self._config.device_ids
        return None if ids is None or not self.has_devices else len(ids) // (self._config.layout.devices or 1)

    def room(self, since: float) -> int | None:
        """Each worker has devices of its own."""
        return None

    @property
    def has_devices(self) -> bool:
        return self._device != CPU

    @property
    def device_type(self) -> str:
        return accelerator_of(self._device).kind

    @property
    def _device(self) -> str:
        return device_of(self._config, self._resources.cluster.nodes)

    @property
    def unhealthy_devices(self) -> Sequence[UnhealthyDevice]:
        """Unhealthy devices of nodes are Ray's to leave out."""
        return ()

    @property
    def default_workers(self) -> int:
        """How many have room changes with the cluster: `minWorkers` says more."""
        return 1

    @property
    def default_most(self) -> int:
        return self.default_workers


def _devices(device: str, resources: Iterable[Mapping[str, float]]) -> float:
    """How many there are of the kind that models run on."""
    return 0.0 if device == CPU else sum(one.get(device, 0) for one in resources)
