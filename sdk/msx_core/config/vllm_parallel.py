"""Processes of vLLM that compute one model: sizes in `vllm:`, for devices that the server leases by parallelLevel."""

import math
from collections.abc import Mapping
from typing import Any

from msx_core.config.keys import ModelKeys
from msx_core.config.layout import find_layout
from msx_core.values import ConfigError, show

TENSOR = "tensor_parallel_size"
SIZES = (TENSOR, "pipeline_parallel_size", "prefill_context_parallel_size")
"""Arguments whose product is the number of processes."""
MOST = 4096

_CUSTOM = "custom"


def check_vllm_parallel(config: ModelKeys, arguments: Mapping[str, Any]) -> None:
    """`arguments`: the section `vllm:`, with underscores. Raises ConfigError where the keys contradict each other."""
    given = _given(arguments)
    if config.parallel_type == _CUSTOM:
        with_sizes(arguments, find_layout(config).devices)
    elif config.parallel_type:
        raise ConfigError(
            f"parallelType: '{config.parallel_type}' starts ranks of MSX's own, and vLLM starts its own: give "
            "parallelType: custom, parallelLevel, and the sizes in vllm:"
        )
    elif (level := math.prod(given.values())) > 1:
        raise ConfigError(
            f"{_named(given)} needs parallelType: custom and parallelLevel: {level}, by which the server leases the "
            "devices"
        )


def with_sizes(arguments: Mapping[str, Any], level: int) -> dict[str, Any]:
    """The arguments with a size of tensor parallelism that makes the product `level`, unless they have one. Raises
    ConfigError where the product is another."""
    given = _given(arguments)
    product = math.prod(given.values())
    if TENSOR not in given and level % product == 0:
        given[TENSOR], product = level // product, level
    if product != level:
        raise ConfigError(
            f"{_named(given)}: the product is {product}, and parallelLevel is {level}: give parallelLevel: {product}, "
            "or other sizes"
        )
    return {**arguments, **given}


def fewer_devices(config: ModelKeys) -> str:
    """Remedy where the server has fewer devices than `parallelLevel`; "" for a model of another engine."""
    if config.vllm is None or config.parallel_type != _CUSTOM:
        return ""
    return ": lower parallelLevel, and vllm.tensor_parallel_size or vllm.pipeline_parallel_size with it"


def _given(arguments: Mapping[str, Any]) -> dict[str, int]:
    return {name: _size(name, arguments[name]) for name in SIZES if name in arguments}


def _size(name: str, value: Any) -> int:
    text = str(value)
    if isinstance(value, bool) or not text.isdecimal() or not 0 < int(text[:9]) <= MOST:
        raise ConfigError(f"vllm.{name}: {show(value)} is not an integer from 1 to {MOST}")
    return int(text)


def _named(given: Mapping[str, int]) -> str:
    return " and ".join(f"vllm.{name}: {size}" for name, size in given.items())
