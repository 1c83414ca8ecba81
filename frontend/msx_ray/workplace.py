"""Ray as a place for workers: what the entry point `ray` of `msx.launchers` leads to."""

from functools import partial

from msx_frontend.plugins.launchers import ClusterSettings, ClusterView, Workplace
from msx_ray.cluster import Cluster
from msx_ray.launcher import ClusterLauncher
from msx_ray.report import cluster_report
from msx_ray.resources import ClusterResources
from msx_ray.source_limits import SourceLimits


def open_cluster(settings: ClusterSettings) -> Workplace:
    """Connects in the background; Ray itself is imported by the driver's process only."""
    cluster = Cluster(settings.address, devices=settings.devices)
    cluster.start()
    resources = ClusterResources(cluster)
    limits = SourceLimits(settings.silent_connections)
    launcher = ClusterLauncher(cluster, settings.agent_address, settings.start_timeout, limits)
    shown = ClusterView(partial(cluster_report, resources), resources.figures, lambda: cluster.problem, cluster.close)
    return Workplace(resources.of, launcher, shown)
