"""Messages between the server and its driver, the child process that talks to Ray: frames over a socket pair."""

import msgspec

from msx_protocol.message import WireMessage


class ClusterNode(msgspec.Struct, frozen=True):
    """A node of the cluster. `resources`: by name, all that it has, and what is free of them."""

    id: str
    name: str
    address: str
    alive: bool
    resources: dict[str, float] = {}
    free: dict[str, float] = {}


class Place(msgspec.Struct, frozen=True):
    """A bundle that a node has given. `devices` are the driver's names, ascending. `problem` says why no agent can run
    there: a sentence, or ""."""

    bundle: int
    node_id: str
    node: str
    address: str
    devices: tuple[str, ...] = ()
    problem: str = ""


# -- to the driver --


class Reserve(WireMessage, tag=1):
    """Ask for the bundles, each on one node, by Ray's strategy (PACK, SPREAD, STRICT_PACK, STRICT_SPREAD).

    Answered by Pending*, then Reserved; or by ReservationRefused. It waits in Ray's own line until Remove.
    """

    id: str
    bundles: list[dict[str, float]]
    strategy: str


class StartAgents(WireMessage, tag=2):
    """Start an agent in each bundle. They dial one of `addresses` at `port`. Lost tells of one that could
    not be started."""

    id: str
    addresses: list[str]
    port: int
    key: str
    fingerprint: str


class Remove(WireMessage, tag=3):
    """Give the bundles back. Answered by Removed, also when there are none."""

    id: str


# -- from the driver --


class Connected(WireMessage, tag=20):
    """It is connected with the cluster. `kept`: the reservations of this server that the cluster still has."""

    address: str
    ray_version: str
    kept: list[str]


class Unreachable(WireMessage, tag=21):
    """It has no connection, and tries again by itself. `reason` is a sentence."""

    reason: str


class Nodes(WireMessage, tag=22):
    """All nodes, whenever something about them has changed."""

    nodes: list[ClusterNode]


class Pending(WireMessage, tag=23):
    """There is not room now. `reason` says what is missing: a sentence without its full stop."""

    id: str
    reason: str


class Reserved(WireMessage, tag=24):
    id: str
    places: list[Place]


class ReservationRefused(WireMessage, tag=25):
    """Ray does not take the request at all."""

    id: str
    reason: str


class Lost(WireMessage, tag=27):
    """A bundle or its agent is gone: the reservation must be removed. `reason` names the node."""

    id: str
    reason: str


class Removed(WireMessage, tag=28):
    id: str


class OrphanRemoved(WireMessage, tag=29):
    """A reservation of another server, which is gone."""

    id: str


ToDriver = Reserve | StartAgents | Remove
FromDriver = Connected | Unreachable | Nodes | Pending | Reserved | ReservationRefused | Lost | Removed | OrphanRemoved
