"""A cluster with several kinds of devices: a server uses one, which the key `accelerator` chooses."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from msx_core.config import parse_model_config
from msx_ray.messages import ClusterNode, Nodes
from msx_ray.resources import ClusterResources
from tests.frontend.devices.fake_accelerator import FakeAccelerator, add_accelerator
from tests.ray.fake_cluster import FakeCluster

NODES = [
    ClusterNode("id-a", "a", "10.0.0.1", True, {"CPU": 16.0, "NPU": 8.0}, {"CPU": 16.0, "NPU": 3.0}),
    ClusterNode("id-b", "b", "10.0.0.2", True, {"CPU": 16.0, "FPU": 4.0}, {"CPU": 16.0, "FPU": 2.0}),
]
WARNING = (
    "a server uses one kind of devices, and the cluster has NPUs and FPUs: models run on the first; accelerator=fake "
    "takes the FPUs"
)


@pytest.fixture(autouse=True)
def _added(monkeypatch: pytest.MonkeyPatch) -> None:
    add_accelerator(monkeypatch, FakeAccelerator())


@pytest.mark.parametrize(
    ("allowed", "resource", "kind", "figures"),
    [
        (None, "NPU", "npu", (8, 3)),
        (["FPU"], "FPU", "fake", (4, 2)),
        (["NPU"], "NPU", "npu", (8, 3)),
        ([], "CPU", "cpu", (0, 0)),
    ],
)
def test_the_devices_that_models_get(
    allowed: Sequence[str] | None,
    resource: str,
    kind: str,
    figures: tuple[float, float],
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def test() -> None:
        cluster = FakeCluster(allowed)
        resources = ClusterResources(cluster)
        for _ in range(2):
            cluster.tell(Nodes(NODES))
        version = resources.of("m:1.0", parse_model_config({})[0])
        assert version.device_type == kind
        version.claim(lambda: None)
        (asked,) = cluster.reservations
        assert asked.bundles.resource == resource
        seen = {name: value for name, _, value in resources.figures()}
        assert (seen["msx_cluster_devices"], seen["msx_cluster_devices_free"]) == figures
        others = {name for node in cluster.nodes for name in (*node.resources, *node.free)} - {"CPU"}
        assert others == set(["NPU", "FPU"] if allowed is None else allowed)

    asyncio.run(test())
    said = [one.getMessage() for one in caplog.records if one.levelname == "WARNING"]
    assert said == ([WARNING] if allowed is None else []), "once"
