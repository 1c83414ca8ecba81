"""Opens where workers run: on this machine, or on the nodes of a cluster."""

from contextlib import AsyncExitStack
from functools import partial

from msx_frontend.config import ServerConfig
from msx_frontend.devices.choose import resources_of_devices
from msx_frontend.installed_plugins import load_plugin
from msx_frontend.resources.claims import Resources
from msx_frontend.resources.model_resources import ModelResources
from msx_frontend.workers.launcher import Launcher
from msx_frontend.workers.workplace import LAUNCHERS, ClusterSettings, OpenCluster, Workplace
from msx_net.connections.descriptors import Descriptors


def open_workplace(config: ServerConfig, resources: Resources, local: Launcher, parts: AsyncExitStack) -> Workplace:
    """A cluster is closed with `parts`, and so after the workers that are opened later.

    Raises PluginError or AcceleratorError.
    """
    if config.cluster_address is None:
        return Workplace(partial(ModelResources, resources), local)
    open_cluster: OpenCluster = load_plugin(LAUNCHERS, "ray", "cluster_address").value
    opened = open_cluster(
        ClusterSettings(
            config.cluster_address,
            config.cluster_agent_address,
            config.cluster_start_timeout,
            Descriptors.of_process().for_agents,
            resources_of_devices(config.accelerator),
        )
    )
    if opened.cluster is not None:
        parts.push_async_callback(opened.cluster.close)
    return opened
