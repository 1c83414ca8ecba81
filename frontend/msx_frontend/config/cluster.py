"""Settings that `cluster_address` needs, and those that it excludes."""

from collections.abc import Iterator
from importlib.util import find_spec

from msx_frontend.config.server_config import ServerConfig, ServerConfigError

_CONFINING = ("worker_user", "worker_groups", "worker_limits", "worker_no_new_privileges")


def check_cluster(config: ServerConfig) -> None:
    """Raises ServerConfigError for keys that a cluster cannot follow, and when Ray is not installed."""
    if config.cluster_address is None:
        if config.cluster_agent_address is not None:
            raise ServerConfigError("cluster_agent_address: has no effect without cluster_address")
        return
    for name in _CONFINING:
        if getattr(config, name):
            raise ServerConfigError(
                f"{name}: does not go with cluster_address: on the nodes of a cluster workers have the rights of the "
                "user that runs Ray there; remove one of the two"
            )
    if find_spec("ray") is None:
        raise ServerConfigError(
            f"cluster_address: {config.cluster_address} needs Ray, which is not installed here: "
            "pip install 'msx-serve[ray]'"
        )


def ignored_in_cluster(config: ServerConfig) -> Iterator[str]:
    """A line for the log about each key that has been given and does nothing in a cluster."""
    if config.cluster_address is None:
        return
    for name, reason in (
        ("number_of_npu", "Ray knows the devices of each node"),
        ("simulate_devices", "Ray knows the devices of each node"),
        ("exclusive_group_devices", "each worker has devices of its own"),
        ("bind_cores", "the cores of a node are Ray's"),
        ("max_worker_processes", "it counts processes of this machine, and workers are on nodes"),
        ("parallel_starts", "workers start on their nodes as Ray places them"),
        ("python", "workers run with the Python that Ray has on their node"),
        ("pythons", "workers run with the Python that Ray has on their node"),
    ):
        if getattr(config, name):
            yield f"{name}: has no effect with cluster_address: {reason}"
