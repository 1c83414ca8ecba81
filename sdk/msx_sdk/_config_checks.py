"""What keys of a model-config.yaml mean together: combinations that cannot be meant, or have no effect."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from msx_sdk.values import ConfigError

if TYPE_CHECKING:
    from msx_sdk.config import Launcher, ModelConfig


MOST_GRAPHS = 12
"""Of the decoding step of a language model."""


class ParallelLayout(NamedTuple):
    """`ranks` processes own `devices` devices together; 0 devices: one process, which shares its device."""

    ranks: int
    devices: int
    pipeline_stages: int
    tensor_parallel: int


def check(config: "ModelConfig") -> list[str]:
    """Raises ConfigError for what is impossible; returns a warning for each key without effect."""
    _check_workers(config)
    _check_launchers(config)
    _check_devices(config, find_layout(config))
    _check_generation(config)
    return list(_without_effect(config))


def _check_workers(config: "ModelConfig") -> None:
    low, high = config.min_workers, config.max_workers
    if low is not None and high is not None and low > high:
        raise ConfigError(f"minWorkers: {low} is more than maxWorkers: {high}")


def _check_launchers(config: "ModelConfig") -> None:
    if config.torchrun and config.msrun:
        raise ConfigError("torchrun and msrun say the same thing: give one of them")
    name, launcher = _launcher(config)
    if launcher is None:
        return
    if launcher.nnodes > 1:
        raise ConfigError(
            f"{name}.nnodes: {launcher.nnodes} is not supported yet: a group runs on one machine (nnodes: 1)"
        )
    if launcher.node_rank >= launcher.nnodes:
        raise ConfigError(f"{name}.node-rank: {launcher.node_rank} is not below nnodes: {launcher.nnodes}")
    if config.msrun and launcher.nproc_per_node is not None and config.parallel_level:
        raise ConfigError(
            f"{name}.nproc-per-node: {launcher.nproc_per_node} and parallelLevel: {config.parallel_level} "
            "both give the size of a group: give one of them"
        )


def _check_devices(config: "ModelConfig", layout: ParallelLayout) -> None:
    if config.share_devices and config.exclusive_devices:
        raise ConfigError("shareDevices and exclusiveDevices contradict each other: give one of them")
    ids = config.device_ids
    if ids is None:
        return
    if twice := [i for i in ids if ids.count(i) > 1]:
        raise ConfigError(f"deviceIds: {list(ids)} names device {twice[0]} twice")
    if layout.devices > len(ids):
        raise ConfigError(f"deviceIds: {list(ids)} has {len(ids)} devices, and one worker group needs {layout.devices}")


def _check_generation(config: "ModelConfig") -> None:
    given, total = config.max_input_tokens, config.max_total_tokens
    if given is not None and total is not None and given >= total:
        raise ConfigError(f"maxInputTokens: {given} leaves no room for an answer within maxTotalTokens: {total}")
    if config.cache_memory is not None and config.cache_fraction is not None:
        raise ConfigError(
            f"cacheMemory: {config.cache_memory} and cacheFraction: {config.cache_fraction} both say how much memory "
            "keys and values get: give one of them"
        )
    slots, contexts = len(config.slot_buckets or ()), len(config.context_buckets or ())
    if slots * contexts > MOST_GRAPHS:
        raise ConfigError(
            f"slotBuckets and contextBuckets: {slots} times {contexts} sizes are {slots * contexts} graphs to compile, "
            f"and at most {MOST_GRAPHS} are allowed: give fewer"
        )


def find_layout(config: "ModelConfig") -> ParallelLayout:
    """Raises ConfigError when the keys that give a group's size contradict each other."""
    if config.parallel_type == "":
        return _single(config)
    size = _group_size(config)
    if config.parallel_type == "custom":
        return ParallelLayout(1, size, 1, 1)
    stages, shards = _split(config, size)
    if stages * shards != size:
        raise ConfigError(
            f"parallel: pipelineStages {stages} times tensorParallel {shards} is {stages * shards}, not "
            f"the group's size, {size} (nproc-per-node or parallelLevel)"
        )
    return ParallelLayout(size, size, stages, shards)


def _single(config: "ModelConfig") -> ParallelLayout:
    name, launcher = _launcher(config)
    if launcher and (launcher.nproc_per_node or 1) > 1:
        raise ConfigError(
            f"{name}.nproc-per-node: {launcher.nproc_per_node} needs parallelType: pp, tp, pptp or custom"
        )
    if _declared_size(config) > 1:
        raise ConfigError("parallel: needs parallelType: pp, tp or pptp")
    return ParallelLayout(1, 0, 1, 1)


def _group_size(config: "ModelConfig") -> int:
    _, launcher = _launcher(config)
    given = (launcher and launcher.nproc_per_node) or config.parallel_level
    size = given or _declared_size(config) or (1 if launcher else 0)
    if not size:
        how = "parallelLevel" if config.parallel_type == "custom" else "msrun.nproc-per-node"
        raise ConfigError(f"parallelType: '{config.parallel_type}' needs {how}, the size of a group")
    return size


def _declared_size(config: "ModelConfig") -> int:
    split = config.parallel
    if split.pipeline_stages is None and split.tensor_parallel is None:
        return 0
    return (split.pipeline_stages or 1) * (split.tensor_parallel or 1)


def _split(config: "ModelConfig", size: int) -> tuple[int, int]:
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


def _launcher(config: "ModelConfig") -> tuple[str, "Launcher | None"]:
    return ("msrun", config.msrun) if config.msrun else ("torchrun", config.torchrun)


def _without_effect(config: "ModelConfig") -> Iterator[str]:
    if config.max_workers and not config.min_workers:
        yield f"maxWorkers: {config.max_workers} has no effect without minWorkers above 0"
    if config.parallel_level and not config.parallel_type:
        yield f"parallelLevel: {config.parallel_level} has no effect without parallelType"
    if config.share_devices and not config.parallel_type:
        yield "shareDevices: true has no effect without parallelType: workers of one process share anyway"
    processes = config.torchrun and config.torchrun.nproc_per_node
    if processes and config.parallel_level not in (0, processes):
        yield f"parallelLevel: {config.parallel_level} has no effect with torchrun.nproc-per-node: {processes}"
    if config.sequence_batching and not config.stateful:
        yield "sequenceBatching: true has no effect without sequenceMaxIdleMSec above 0"
    if config.parallel_type == "custom" and _declared_size(config):
        yield "parallel: has no effect with parallelType: custom"
