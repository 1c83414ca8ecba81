"""Settings of a model on other machines, and the effect of a cluster on its other settings."""

from collections.abc import Iterator

from msx_core.config import ConfigError, ModelConfig


def check_for_cluster(config: ModelConfig, *, clustered: bool) -> list[str]:
    """Raises ConfigError for ranks on several nodes where the server has no cluster, and for an interpreter by name
    where it has one; returns a warning for each key that means something else in one."""
    pipeline = config.pipeline
    parts = [config, *(stage.config for stage in pipeline.stages.values())] if pipeline else [config]
    if not clustered:
        for part in parts:
            _needs_no_cluster(part)
        return []
    if config.python is not None:
        raise ConfigError(
            f"python: {config.python} is an interpreter of the server's machine, and in a cluster workers run with the "
            "Python that Ray has on their node: leave it out"
        )
    return list(dict.fromkeys(warning for part in parts for warning in _otherwise(part)))


def _needs_no_cluster(config: ModelConfig) -> None:
    asked = f"nnodes or parallel.nodes: {config.nodes}" if config.nodes > 1 else f"placement: {config.placement}"
    if config.nodes > 1 or config.placement != "pack":
        raise ConfigError(
            f"{asked} needs a cluster, and this server has none: a group runs on one machine, unless cluster_address "
            "names a Ray cluster"
        )


def _otherwise(config: ModelConfig) -> Iterator[str]:
    if config.device_ids is not None:
        yield (
            f"deviceIds: {list(config.device_ids)} counts as {len(config.device_ids)} devices in a cluster: Ray "
            "chooses which"
        )
    if config.share_devices:
        yield "shareDevices: true has no effect in a cluster: each worker has devices of its own"
    if config.workers_per_device is not None:
        yield (
            f"workersPerDevice: {config.workers_per_device} has no effect in a cluster: each worker has devices of its "
            "own"
        )
    if config.bind_cores and "bind_cores" in config.explicit:
        yield "bindCores: true has no effect in a cluster: the cores of a node are Ray's"
