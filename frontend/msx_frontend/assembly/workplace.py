"""Where workers run: on this machine, or on the nodes of a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial

from msx_frontend.apis.cluster.family import Report
from msx_frontend.config import ServerConfig
from msx_frontend.metrics.observer import Figure
from msx_frontend.resources.claims import Resources
from msx_frontend.resources.model_resources import ModelResources
from msx_frontend.resources.supply import Supply
from msx_frontend.workers.launcher import Launcher
from msx_net.connections.descriptors import Descriptors


@dataclass(frozen=True)
class Workplace:
    supply: Supply
    launcher: Launcher
    report: Report | None = None
    """What `GET /cluster` says; None, as the following, without a cluster."""
    figures: Callable[[], Iterable[Figure]] | None = None
    problem: Callable[[], str] | None = None


def open_workplace(config: ServerConfig, resources: Resources, local: Launcher, parts: AsyncExitStack) -> Workplace:
    """A cluster is closed with `parts`, and so after the workers that are opened later."""
    if config.cluster_address is None:
        return Workplace(partial(ModelResources, resources), local)
    from msx_ray.claims import ClusterResources  # servers without a cluster do not load it
    from msx_ray.cluster import Cluster
    from msx_ray.launcher import ClusterLauncher
    from msx_ray.report import cluster_report
    from msx_ray.source_limits import SourceLimits

    cluster = Cluster(config.cluster_address)
    cluster.start()
    parts.push_async_callback(cluster.close)
    placed = ClusterResources(cluster)
    limits = SourceLimits(Descriptors.of_process().for_agents)
    launcher = ClusterLauncher(cluster, config.cluster_agent_address, config.cluster_start_timeout, limits)
    return Workplace(placed.of, launcher, partial(cluster_report, placed), placed.figures, lambda: cluster.problem)
