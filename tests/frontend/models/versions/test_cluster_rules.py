"""Settings of a model for several machines."""

from __future__ import annotations

from typing import Any

import pytest

from msx_core.config import ConfigError, ModelConfig, parse_model_config
from msx_frontend.models.versions.cluster_rules import check_for_cluster

TP2: dict[str, Any] = {"parallelType": "tp", "parallelLevel": 2}
PP2: dict[str, Any] = {"parallelType": "pp", "parallelLevel": 2, "placement": "stagesApart"}


def config_of(**keys: Any) -> ModelConfig:
    return parse_model_config(keys)[0]


@pytest.mark.parametrize(
    ("keys", "named"),
    [
        ({**TP2, "parallel": {"nodes": 2}}, "nnodes or parallel.nodes: 2 needs a cluster"),
        (PP2, "placement: stagesApart needs a cluster"),
        ({"stages": {"one": {"handler": "h", **PP2}}}, "placement: stagesApart needs a cluster"),
    ],
)
def test_nodes_need_a_cluster(keys: dict[str, Any], named: str) -> None:
    config = config_of(**keys)
    with pytest.raises(ConfigError, match=named):
        check_for_cluster(config, clustered=False)
    assert check_for_cluster(config, clustered=True) == []


def test_other_keys_in_a_cluster() -> None:
    config = config_of(**TP2, deviceIds=[4, 5], shareDevices=True, bindCores=True)
    assert check_for_cluster(config, clustered=False) == []
    assert [line.partition(":")[0] for line in check_for_cluster(config, clustered=True)] == [
        "deviceIds",
        "shareDevices",
        "bindCores",
    ]
    assert check_for_cluster(config_of(workersPerDevice=2), clustered=True) == [
        "workersPerDevice: 2 has no effect in a cluster: each worker has devices of its own"
    ]
    assert check_for_cluster(config_of().with_defaults(bind_cores=True), clustered=True) == []


def test_an_interpreter_is_one_of_the_servers_machine() -> None:
    config = config_of(python="vllm")
    assert check_for_cluster(config, clustered=False) == []
    with pytest.raises(ConfigError, match="python: vllm is an interpreter of the server's machine, and in a cluster"):
        check_for_cluster(config, clustered=True)
