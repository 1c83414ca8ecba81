"""Cluster in `GET /cluster`, the metrics and the log."""

from __future__ import annotations

import asyncio
import logging

import pytest

from msx_core.config import ModelConfig, parse_model_config
from msx_ray.messages import Nodes, Unreachable
from msx_ray.report import cluster_report
from msx_ray.resources import ClusterResources
from tests.ray.fake_cluster import FakeCluster, make_node


def test_who_holds_what_and_what_waits() -> None:
    async def test() -> None:
        cluster = FakeCluster()
        resources = ClusterResources(cluster)
        cluster.join(a=2, b=1)
        pair = resources.claim("pair:1.0", parse_model_config({"parallelType": "tp", "parallelLevel": 2})[0])
        late = resources.claim("late:2.0", ModelConfig())
        pair.worker, late.worker = 9000, 9001
        first, second = cluster.reservations
        cluster.grant(first, "a")
        cluster.show({"a": 2, "b": 1}, {"a": 0, "b": 0})
        cluster.pend(second)
        report = cluster_report(resources)
        assert [(one["name"], one["devices"], one["free"]) for one in report["nodes"]] == [
            ("a", ["0", "1"], {"CPU": 16.0, "NPU": 0.0}),
            ("b", [], {"CPU": 16.0, "NPU": 0.0}),
        ]
        assert report["placed"] == [
            {
                "model": "pair",
                "version": "1.0",
                "worker": "9000",
                "reservation": first.id,
                "shares": [{"node": "a", "nodeId": "id-a", "ranks": [0, 1], "devices": ["0", "1"]}],
            }
        ]
        assert report["waiting"] == [
            {
                "model": "late",
                "version": "2.0",
                "worker": "9001",
                "resource": "devices",
                "reason": "late:2.0 waits for 1 NPU; free now: 0 on a, 0 on b.",
                "needs": [{"NPU": 1.0}],
                "strategy": "PACK",
            }
        ]
        assert (report["address"], report["head"], report["rayVersion"], report["problem"]) == (
            *("ray-head:6379", "10.0.0.1:6379", "2.60.0"),
            None,
        )
        gauges = [(name, labels[3:], value) for name, labels, value in resources.figures()]
        assert gauges == [
            ("msx_cluster_up", (), 1.0),
            ("msx_cluster_nodes", (), 2.0),
            ("msx_cluster_devices", (), 3.0),
            ("msx_cluster_devices_free", (), 0.0),
            ("msx_rank_node", ("0", "a"), 1.0),
            ("msx_rank_node", ("1", "a"), 1.0),
        ]
        cluster.tell(Unreachable("Nothing answers."))
        assert cluster_report(resources)["problem"] == "Nothing answers."

    asyncio.run(test())


def test_nodes_that_leave_and_come_back(caplog: pytest.LogCaptureFixture) -> None:
    """A node that comes back has another id: people know it by its name."""
    caplog.set_level(logging.INFO, "msx.cluster")
    cluster = FakeCluster()
    cluster.join(a=1)
    cluster.tell(Nodes([]))
    node = make_node("a", 1)
    cluster.tell(Nodes([type(node)("id-new", "a", node.address, True, node.resources, node.free), make_node("b", 1)]))
    assert [record.message for record in caplog.records][1:] == [
        "node a has joined the cluster",
        "node a has left the cluster",
        "node a is back in the cluster",
        "node b has joined the cluster",
    ]
