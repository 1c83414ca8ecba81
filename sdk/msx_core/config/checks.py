"""Checks of keys that belong together: impossible combinations, and keys without effect."""

import math
from collections.abc import Iterator

from msx_core.config.env import check_env
from msx_core.config.keys import ModelKeys
from msx_core.config.layout import ParallelLayout, declared_size, find_layout, find_nodes, launcher_of
from msx_core.config.vllm_parallel import check_vllm_parallel
from msx_core.config.vllm_section import vllm_arguments
from msx_core.names import aliases_problem
from msx_core.values import ConfigError

MOST_GRAPHS = 12
"""The most graphs of a language model's decoding step."""


def check(config: ModelKeys) -> list[str]:
    """Raises ConfigError for an impossible combination; returns a warning for each key without effect."""
    _check_workers(config)
    _check_autoscaling(config)
    _check_launchers(config)
    layout = find_layout(config)
    _check_devices(config, layout)
    _check_placement(config, layout)
    _check_generation(config)
    _check_image_range(config.image_range)
    _check_example(config)
    if problem := aliases_problem(config.aliases):
        raise ConfigError(f"aliases: {problem}")
    check_env(config.env, config.min_workers)
    if config.vllm is not None:
        check_vllm_parallel(config, vllm_arguments(config.vllm))
    return list(_without_effect(config))


def _check_workers(config: ModelKeys) -> None:
    low, high = config.min_workers, config.max_workers
    if low is not None and high is not None and low > high:
        raise ConfigError(f"minWorkers: {low} is more than maxWorkers: {high}")


def _check_autoscaling(config: ModelKeys) -> None:
    options = config.scales_by_load
    if options is None:
        return
    if options.target_queue_time is not None and options.target_in_flight is not None:
        raise ConfigError(
            f"autoscaling.targetQueueTime: {options.target_queue_time} and autoscaling.targetInFlight: "
            f"{options.target_in_flight:g} both say when there are enough workers: give one of them"
        )
    if config.max_workers == 0:
        raise ConfigError("autoscaling: has no room with maxWorkers: 0: give maxWorkers above 0, or leave it out")


def _check_launchers(config: ModelKeys) -> None:
    if config.torchrun and config.msrun:
        raise ConfigError("torchrun and msrun say the same thing: give one of them")
    name, launcher = launcher_of(config)
    if launcher is None:
        return
    if launcher.node_rank >= launcher.nnodes:
        raise ConfigError(f"{name}.node-rank: {launcher.node_rank} is not below nnodes: {launcher.nnodes}")
    if config.msrun and launcher.nproc_per_node is not None and config.parallel_level:
        raise ConfigError(
            f"{name}.nproc-per-node: {launcher.nproc_per_node} and parallelLevel: {config.parallel_level} "
            "both give the size of a group: give one of them"
        )


def _check_devices(config: ModelKeys, layout: ParallelLayout) -> None:
    if config.share_devices and config.exclusive_devices:
        raise ConfigError("shareDevices and exclusiveDevices contradict each other: give one of them")
    _check_per_device(config)
    ids = config.device_ids
    if ids is None:
        return
    if twice := [i for i in ids if ids.count(i) > 1]:
        raise ConfigError(f"deviceIds: {list(ids)} names device {twice[0]} twice")
    if layout.devices > len(ids):
        raise ConfigError(f"deviceIds: {list(ids)} has {len(ids)} devices, and one worker group needs {layout.devices}")


def _check_per_device(config: ModelKeys) -> None:
    most = config.workers_per_device
    if most is not None and config.parallel_type:
        raise ConfigError(
            f"workersPerDevice: {most} is for workers of one process on one device, and parallelType: "
            f"{config.parallel_type} makes groups: leave it out; groups share devices by shareDevices: true"
        )
    if most is not None and most > 1 and config.exclusive_devices:
        raise ConfigError(
            f"workersPerDevice: {most} and exclusiveDevices contradict each other: an exclusive worker is alone on its "
            "device; give one of them"
        )


def _check_placement(config: ModelKeys, layout: ParallelLayout) -> None:
    if config.placement != "pack" and (nodes := find_nodes(config)) > 1:
        raise ConfigError(
            f"placement: {config.placement} and {nodes} nodes (nnodes or parallel.nodes) both say where ranks "
            "are: give one of them"
        )
    if config.placement == "stagesApart" and layout.pipeline_stages < 2:
        raise ConfigError("placement: stagesApart needs parallelType: pp or pptp, with two stages or more")


def _check_generation(config: ModelKeys) -> None:
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


def _check_image_range(black_white: tuple[float, float] | None) -> None:
    if black_white is None:
        return
    black, white = black_white
    if not (math.isfinite(black) and math.isfinite(white) and black < white):
        raise ConfigError(f"imageRange: {list(black_white)} must be two finite numbers, the lower one first")


def _check_example(config: ModelKeys) -> None:
    if config.example is not None and isinstance(config.warmup, tuple):
        raise ConfigError("example and warmup both give the requests of the warm-up: give one of them")
    if config.expected is None:
        return
    if config.expected.outputs is None:
        raise ConfigError("expected: has no outputs: give the reply to example: as expected.outputs")
    if config.example is None:
        raise ConfigError("expected: has no example: give the request that it answers as example")
    if config.warmup is False:
        raise ConfigError("expected: is compared at warm-up, which warmup: false turns off: leave one of them out")
    requests, replies = config.example, config.expected.outputs
    if config.several_examples and not (isinstance(replies, list) and len(replies) == len(requests)):
        raise ConfigError(
            f"expected.outputs: is not a list of {len(requests)} replies, one for each request of example"
        )


def _without_effect(config: ModelKeys) -> Iterator[str]:
    if config.scales_by_load is not None:
        if config.min_workers and config.min_workers == config.max_workers:
            yield f"autoscaling: has no effect with minWorkers and maxWorkers: {config.min_workers}"
    elif config.max_workers and not config.min_workers:
        yield f"maxWorkers: {config.max_workers} has no effect without minWorkers above 0"
    if config.parallel_level and not config.parallel_type:
        yield f"parallelLevel: {config.parallel_level} has no effect without parallelType"
    if config.share_devices and not config.parallel_type:
        yield "shareDevices: true has no effect without parallelType: workers of one process share anyway"
    if config.workers_per_device is not None and config.device_type == "cpu":
        yield f"workersPerDevice: {config.workers_per_device} has no effect with deviceType: cpu"
    if config.placement == "spread" and not config.parallel_type:
        yield "placement: spread has no effect without parallelType: a worker of one process is on one node anyway"
    launcher = config.torchrun
    processes = launcher.nproc_per_node if launcher else None
    if launcher and processes and config.parallel_level not in (0, processes * launcher.nnodes):
        yield f"parallelLevel: {config.parallel_level} has no effect with torchrun.nproc-per-node: {processes}"
    if config.sequence_batching and not config.stateful:
        yield "sequenceBatching: true has no effect without sequenceMaxIdleMSec above 0"
    if config.split_instances and config.stateful:
        yield "splitInstances: true has no effect with sequenceBatching: requests of a sequence stay whole"
    if config.parallel_type == "custom" and declared_size(config):
        yield "parallel: has no effect with parallelType: custom"
