"""Where workers run: on this machine, or where a launcher of another package starts them."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from msx_frontend.metrics.observer import Figure
from msx_frontend.resources.supply import Supply
from msx_frontend.workers.launcher import Launcher

LAUNCHERS = "msx.launchers"
"""Group of entry points that lead to an `OpenCluster`."""

Report = Callable[[], dict[str, Any]]


class ClusterSettings(NamedTuple):
    """The server's keys of a cluster."""

    address: str
    """`cluster_address`."""
    agent_address: str | None
    """`cluster_agent_address`: where agents reach this server; None for the route to the cluster."""
    start_timeout: float
    """`cluster_start_timeout`: seconds that agents have to connect."""
    silent_connections: int
    """The most connections to ports for agents that have not said who they are."""
    devices: Sequence[str]
    """Ray's names of the devices that `accelerator` allows, in the order of preference."""


@dataclass(frozen=True)
class ClusterView:
    """View of a cluster in the server."""

    report: Report
    """`GET /cluster`."""
    figures: Callable[[], Iterable[Figure]]
    """Gauges, by the names of docs/metrics.md."""
    problem: Callable[[], str]
    """Why nothing can be placed now, a sentence; "" while the cluster is there."""
    close: Callable[[], Awaitable[None]]
    """Called once, when no worker is left."""


@dataclass(frozen=True)
class Workplace:
    supply: Supply
    launcher: Launcher
    cluster: ClusterView | None = None
    """None on this machine."""


OpenCluster = Callable[[ClusterSettings], Workplace]
"""Called on the loop, and does not block: a cluster that does not answer is a `problem`."""
