"""Which rank is in which bundle that the cluster has given."""

from collections.abc import Sequence

from msx_frontend.plugins.launchers import GroupPlacement, Share
from msx_ray.messages import Place
from msx_ray.reservation import Reservation


def placement_of(reservation: Reservation) -> GroupPlacement:
    """Neighbouring ranks are on one node, in whichever order Ray has taken the nodes."""
    first = 0
    ranks: dict[int, tuple[int, ...]] = {}
    for index in _by_node(reservation.places):
        count = reservation.bundles.ranks[index]
        ranks[index] = tuple(range(first, first + count))
        first += count
    shares = (
        Share(place.node, place.address, ranks[index], place.devices, place.node_id)
        for index, place in enumerate(reservation.places)
    )
    return GroupPlacement(reservation.id, tuple(shares), reservation.bundles.resource)


def _by_node(places: Sequence[Place]) -> list[int]:
    nodes = list(dict.fromkeys(place.node_id for place in places))
    return sorted(range(len(places)), key=lambda index: nodes.index(places[index].node_id))
