"""How the keys of a model-config.yaml divide a model over ranks and devices."""

from typing import NamedTuple

from msx_core.config.keys import LauncherOptions, ModelKeys
from msx_core.values import ConfigError


class ParallelLayout(NamedTuple):
    """`ranks` processes own `devices` devices together; 0 devices: one process, which shares its device."""

    ranks: int
    devices: int
    pipeline_stages: int
    tensor_parallel: int


def find_layout(config: ModelKeys) -> ParallelLayout:
    """Raises ConfigError when the keys that give a group's size contradict each other."""
    if config.parallel_type == "":
        return _single(config)
    size, nodes = _group_size(config), find_nodes(config)
    if config.parallel_type == "custom":
        return _one_process(size, nodes)
    stages, shards = _split(config, size)
    if stages * shards != size:
        raise ConfigError(
            f"parallel: pipelineStages {stages} times tensorParallel {shards} is {stages * shards}, not "
            f"the group's size, {size} (nproc-per-node times nnodes, or parallelLevel)"
        )
    if size % nodes:
        raise ConfigError(f"parallel.nodes: {size} ranks cannot be divided equally over {nodes} nodes")
    return ParallelLayout(size, size, stages, shards)


def _one_process(devices: int, nodes: int) -> ParallelLayout:
    if nodes > 1:
        raise ConfigError(
            f"parallelType: 'custom' is one process, which cannot be on {nodes} nodes (nnodes, parallel.nodes); "
            "use pp, tp or pptp"
        )
    return ParallelLayout(1, devices, 1, 1)


def find_nodes(config: ModelKeys) -> int:
    """Number of machines that a group is on, with equally many ranks each, as torchrun says it or `parallel:` does; 1:
    nothing is said of it. Raises ConfigError."""
    name, launcher = launcher_of(config)
    theirs, own = launcher.nnodes if launcher else 1, config.parallel.nodes
    if own is not None and theirs not in (1, own):
        raise ConfigError(f"parallel.nodes: {own} and {name}.nnodes: {theirs} contradict each other: give one of them")
    return own or theirs


def _single(config: ModelKeys) -> ParallelLayout:
    name, launcher = launcher_of(config)
    if launcher and (launcher.nproc_per_node or 1) > 1:
        raise ConfigError(
            f"{name}.nproc-per-node: {launcher.nproc_per_node} needs parallelType: pp, tp, pptp or custom"
        )
    if declared_size(config) > 1:
        raise ConfigError("parallel: needs parallelType: pp, tp or pptp")
    if (nodes := find_nodes(config)) > 1:
        raise ConfigError(f"nnodes or parallel.nodes: {nodes} needs parallelType: pp, tp or pptp")
    return ParallelLayout(1, 0, 1, 1)


def _group_size(config: ModelKeys) -> int:
    _, launcher = launcher_of(config)
    given = config.parallel_level
    if launcher and launcher.nproc_per_node:
        given = launcher.nproc_per_node * launcher.nnodes
    size = given or declared_size(config) or (launcher.nnodes if launcher else 0)
    if not size:
        how = "parallelLevel" if config.parallel_type == "custom" else "msrun.nproc-per-node"
        raise ConfigError(f"parallelType: '{config.parallel_type}' needs {how}, the size of a group")
    return size


def declared_size(config: ModelKeys) -> int:
    split = config.parallel
    if split.pipeline_stages is None and split.tensor_parallel is None:
        return 0
    return (split.pipeline_stages or 1) * (split.tensor_parallel or 1)


def _split(config: ModelKeys, size: int) -> tuple[int, int]:
    stages, shards = config.parallel.pipeline_stages, config.parallel.tensor_parallel
    if config.parallel_type == "pp":
        return _only("pp", "tensorParallel", shards) and (stages or size), 1
    if config.parallel_type == "tp":
        return 1, _only("tp", "pipelineStages", stages) and (shards or size)
    if stages is None and shards is None:
        raise ConfigError("parallelType: 'pptp' needs parallel: with pipelineStages and tensorParallel")
    return stages or size // (shards or 1), shards or size // (stages or 1)


def _only(parallel_type: str, key: str, value: int | None) -> bool:
    if (value or 1) > 1:
        raise ConfigError(f"parallel.{key}: {value} does not fit parallelType: '{parallel_type}'; use 'pptp'")
    return True


def launcher_of(config: ModelKeys) -> tuple[str, LauncherOptions | None]:
    return ("msrun", config.msrun) if config.msrun else ("torchrun", config.torchrun)
