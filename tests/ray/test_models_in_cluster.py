"""Models whose workers run in a cluster, from registration to the loss of a node."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import patch

from msx_frontend.models.describe import describe
from msx_frontend.models.versions.states import ModelState
from msx_ray import claims
from msx_ray.messages import Unreachable
from msx_ray.resources import ClusterResources
from tests.frontend.harness import FakeGroup, Harness, in_harness, until
from tests.ray.fake_cluster import FakeCluster

TP2 = "parallelType: tp\nmsrun: {nnodes: 2}\n"


def test_a_group_waits_runs_loses_its_node_and_runs_again(tmp_path: Path) -> None:
    cluster = FakeCluster()
    resources = ClusterResources(cluster)

    async def test(harness: Harness) -> None:
        await harness.register("m", config=TP2)
        version = harness.registry.find("m")
        assert version.workers.waiting == 1
        assert "still connecting to the cluster" in version.status.reason
        cluster.join(a=1, b=1, c=1)
        (first,) = cluster.reservations
        cluster.grant(first, "a", "b")
        await until(lambda: version.status.state is ModelState.READY)
        worker = describe(version)["workers"][0]
        assert (worker["nodes"], worker["devices"]) == ({"a": ["0"], "b": ["0"]}, "0,0")
        assert describe(version)["deviceType"] == "npu"
        (group,) = FakeGroup.living
        assert group.spec.placement is not None
        assert group.spec.placement.id == first.id
        ranks = [(one.env["RANK"], one.env["LOCAL_RANK"], one.load.device_id) for one in group.spec.ranks]
        assert ranks == [("0", "0", 0), ("1", "0", 0)]

        cluster.tell(Unreachable("Ray's head does not answer."))
        assert version.workers.ready == 1
        cluster.join(a=1, b=1, c=1)

        cluster.lose(first, "node b or its holder is gone")
        await until(lambda: cluster.reservations and first not in cluster.reservations)
        (second,) = cluster.reservations
        assert not version.workers.ready
        cluster.grant(second, "a", "c")
        await until(lambda: version.workers.ready)
        assert describe(version)["workers"][0]["nodes"] == {"a": ["0"], "c": ["0"]}

    with patch.object(claims, "PAUSE", 0.0):
        in_harness(tmp_path, test, supply=resources.of, cluster_address="auto")
    assert not resources.claims
    assert not cluster.reservations
