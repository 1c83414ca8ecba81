"""Sizes of vLLM's parallelism, and the devices that the server leases for them."""

from __future__ import annotations

from typing import Any

import pytest

from msx_core.config import ConfigError, parse_model_config
from msx_core.config.vllm_parallel import with_sizes

CUSTOM = {"parallelType": "custom", "parallelLevel": 4}


@pytest.mark.parametrize(
    "sizes",
    [
        {},
        {"tensor-parallel-size": 4},
        {"tensor-parallel-size": "2", "pipeline_parallel_size": 2},
        {"pipeline-parallel-size": 2},
    ],
)
def test_sizes_that_fit(sizes: dict[str, Any]) -> None:
    assert parse_model_config({**CUSTOM, "vllm": sizes})[1] == []


def test_one_process_needs_no_group() -> None:
    assert parse_model_config({"vllm": {"tensor_parallel_size": 1}})[1] == []


@pytest.mark.parametrize(("given", "level", "tensor"), [({}, 2, 2), ({}, 1, 1), ({"pipeline_parallel_size": 2}, 4, 2)])
def test_the_tensor_size_is_what_the_level_leaves(given: dict[str, Any], level: int, tensor: int) -> None:
    assert with_sizes({"dtype": "auto", **given}, level) == {"dtype": "auto", **given, "tensor_parallel_size": tensor}


@pytest.mark.parametrize(
    ("keys", "sizes", "told"),
    [
        (
            CUSTOM,
            {"tensor-parallel-size": 2},
            "vllm.tensor_parallel_size: 2: the product is 2, and parallelLevel is 4: give parallelLevel: 2, or other "
            "sizes",
        ),
        (
            CUSTOM,
            {"pipeline_parallel_size": 3},
            "vllm.pipeline_parallel_size: 3: the product is 3, and parallelLevel is 4: give parallelLevel: 3, or other "
            "sizes",
        ),
        (
            {},
            {"tensor-parallel-size": 2, "pipeline_parallel_size": 2},
            "vllm.tensor_parallel_size: 2 and vllm.pipeline_parallel_size: 2 needs parallelType: custom and "
            "parallelLevel: 4, by which the server leases the devices",
        ),
        (
            {"parallelType": "tp", "parallelLevel": 2},
            {},
            "parallelType: 'tp' starts ranks of MSX's own, and vLLM starts its own: give parallelType: custom, "
            "parallelLevel, and the sizes in vllm:",
        ),
        ({}, {"tensor_parallel_size": "two"}, "vllm.tensor_parallel_size: 'two' is not an integer from 1 to 4096"),
        ({}, {"tensor_parallel_size": 0}, "vllm.tensor_parallel_size: 0 is not an integer from 1 to 4096"),
        ({}, {"tensor_parallel_size": True}, "vllm.tensor_parallel_size: True is not an integer from 1 to 4096"),
    ],
)
def test_sizes_that_do_not_fit(keys: dict[str, Any], sizes: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError) as info:
        parse_model_config({**keys, "vllm": sizes})
    assert str(info.value) == told
