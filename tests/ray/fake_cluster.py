"""A cluster whose driver is the test: nodes and places are as it says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msx_ray.cluster import Cluster
from msx_ray.messages import ClusterNode, Connected, FromDriver, Lost, Nodes, Pending, Place, Reserved
from msx_ray.reservation import Reservation


class FakeCluster(Cluster):
    def __init__(self, devices: Sequence[str] | None = None) -> None:
        super().__init__("ray-head:6379", "abc", devices)

    def tell(self, message: FromDriver) -> None:
        self._received(message)

    def join(self, **npus: int) -> None:
        """Connected, with these NPUs by node, all free."""
        self.tell(Connected("10.0.0.1:6379", "2.60.0", [one.id for one in self.reservations]))
        self.show(npus, npus)

    def show(self, npus: Mapping[str, int], free: Mapping[str, int]) -> None:
        self.tell(Nodes([make_node(name, npus[name], free.get(name, 0)) for name in npus]))

    def pend(self, reservation: Reservation) -> None:
        self.tell(Pending(reservation.id, "the cluster has no room now"))

    def grant(self, reservation: Reservation, *nodes: str) -> None:
        """Its bundles, on these nodes, with the devices from 0 up on each."""
        given: dict[str, int] = {}
        places = []
        for index, node in enumerate(nodes):
            count = int(reservation.bundles.resources[index].get("NPU", 0))
            first = given.get(node, 0)
            given[node] = first + count
            devices = tuple(str(number) for number in range(first, first + count))
            places.append(Place(index, f"id-{node}", node, "10.0.0.9", devices))
        self.tell(Reserved(reservation.id, places))

    def lose(self, reservation: Reservation, reason: str) -> None:
        self.tell(Lost(reservation.id, reason))


def make_node(name: str, npus: int, free: int | None = None) -> ClusterNode:
    resources = {"CPU": 16.0, **({"NPU": float(npus)} if npus else {})}
    left = {"CPU": 16.0, **({"NPU": float(npus if free is None else free)} if npus else {})}
    return ClusterNode(f"id-{name}", name, "10.0.0.9", alive=True, resources=resources, free=left)
