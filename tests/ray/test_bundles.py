"""Bundles that a group requests from a cluster, by its model's settings."""

from __future__ import annotations

from typing import Any

import pytest

from msx_core.config import ModelConfig, parse_model_config
from msx_ray.bundles import bundles_of, device_of
from msx_ray.messages import ClusterNode
from msx_ray.room import missing_room
from tests.frontend.devices.fake_accelerator import FakeAccelerator, add_accelerator
from tests.ray.fake_cluster import make_node

TWO = [make_node("a", 4), make_node("b", 4)]


def config_of(**keys: Any) -> ModelConfig:
    return parse_model_config(keys)[0]


TP4: dict[str, Any] = {"parallelType": "tp", "parallelLevel": 4}
PPTP8: dict[str, Any] = {
    "parallelType": "pptp",
    "parallelLevel": 8,
    "parallel": {"pipelineStages": 2, "tensorParallel": 4},
}


@pytest.mark.parametrize(
    ("keys", "devices", "ranks", "strategy"),
    [
        ({}, [1], [1], "PACK"),
        ({"parallelType": "custom", "parallelLevel": 3}, [3], [1], "PACK"),
        (TP4, [4], [4], "STRICT_PACK"),
        ({**TP4, "parallelLevel": 6}, [1] * 6, [1] * 6, "PACK"),
        ({**TP4, "placement": "spread"}, [1] * 4, [1] * 4, "SPREAD"),
        ({**TP4, "parallel": {"nodes": 2}}, [2, 2], [2, 2], "STRICT_SPREAD"),
        ({"parallelType": "tp", "msrun": {"nnodes": 2, "nproc-per-node": 3}}, [3, 3], [3, 3], "STRICT_SPREAD"),
        ({**PPTP8, "placement": "stagesApart"}, [4, 4], [4, 4], "STRICT_SPREAD"),
    ],
)
def test_bundles(keys: dict[str, Any], devices: list[int], ranks: list[int], strategy: str) -> None:
    bundles = bundles_of(config_of(**keys), TWO)
    assert [one["NPU"] for one in bundles.resources] == devices
    assert (list(bundles.ranks), bundles.strategy) == (ranks, strategy)


def test_an_accelerator_that_is_added_is_asked_for_by_its_own_resource(monkeypatch: pytest.MonkeyPatch) -> None:
    add_accelerator(monkeypatch, FakeAccelerator())
    node = ClusterNode("id-a", "a", "10.0.0.9", True, {"CPU": 16.0, "FPU": 4.0}, {"FPU": 4.0})
    assert device_of(config_of(**TP4), [node]) == "FPU"
    assert bundles_of(config_of(**TP4), [node]).resource == "FPU"
    assert device_of(config_of(**TP4), [node, make_node("b", 1)]) == "NPU", "the first that the server knows"


@pytest.mark.parametrize("nodes", [TWO, [make_node("a", 0)]])
def test_a_model_without_devices_takes_cores(nodes: list[Any]) -> None:
    keys = {"deviceType": "cpu"} if nodes is TWO else {}
    assert bundles_of(config_of(**keys), nodes).resources == ({"CPU": 1.0},)


def test_a_node_without_room_now_is_not_waited_for() -> None:
    """Four free devices on two nodes are better than a node with four that others have."""
    nodes = [make_node("a", 4, 2), make_node("b", 4, 2)]
    assert bundles_of(config_of(**TP4), nodes).strategy == "PACK"


@pytest.mark.parametrize(
    ("keys", "nodes", "text"),
    [
        (
            {"parallelType": "custom", "parallelLevel": 8},
            [make_node("a", 2), make_node("node-b", 4)],
            "needs a node with 8 NPUs; the largest of the cluster has 4 (node-b)",
        ),
        ({}, [], "needs a node with 1 CPU; the cluster has no nodes now"),
        (
            {**TP4, "parallel": {"nodes": 2}},
            [make_node("a", 4), make_node("b", 1)],
            "needs 2 nodes with 2 NPUs each; the cluster has 1 (a)",
        ),
        ({**TP4, "parallelLevel": 9}, TWO, "needs 9 NPUs; the whole cluster has 8"),
        (
            {**TP4, "parallelLevel": 2, "parallel": {"nodes": 2}},
            [make_node("a", 4, 1), make_node("b", 4, 0)],
            "waits for 2 NPUs on 2 nodes; free now: 1 on a, 0 on b",
        ),
        ({}, [make_node("a", 1, 0)], "waits for 1 NPU; free now: 0 on a"),
    ],
)
def test_missing_room(keys: dict[str, Any], nodes: list[Any], text: str) -> None:
    assert missing_room(bundles_of(config_of(**keys), nodes), nodes) == text
