"""Claims to a cluster: what they wait for, what they get, and how they lose it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from msx_core.config import parse_model_config
from msx_ray import claims
from msx_ray.claims import ClusterClaim
from msx_ray.messages import Unreachable
from msx_ray.resources import ClusterResources, VersionInCluster
from tests.ray.fake_cluster import FakeCluster

TP2: dict[str, Any] = {"parallelType": "tp", "parallelLevel": 2}
SPREAD2: dict[str, Any] = {**TP2, "parallel": {"nodes": 2}}


class Site:
    def __init__(self) -> None:
        self.cluster = FakeCluster()
        self.resources = ClusterResources(self.cluster)

    def claim(self, **keys: Any) -> ClusterClaim:
        return self.resources.of("m:1.0", parse_model_config(keys)[0]).claim(lambda: None)


class Worker:
    """Worker of a claim: it does what the test says when it is told something."""

    number = 9000

    def __init__(
        self, changed: Callable[[], None] = lambda: None, withdrawn: Callable[[], None] = lambda: None
    ) -> None:
        self.claim_changed, self.claim_withdrawn = changed, withdrawn

    def own_memory(self) -> int:
        return 0


def in_loop(test: Callable[[Site], None]) -> None:
    async def run() -> None:
        test(Site())

    asyncio.run(run())


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claims, "PAUSE", 0.0)


def reason(claim: ClusterClaim) -> str:
    return f"{claim.shortage.resource}: {claim.shortage.reason}" if claim.shortage else ""


def test_it_waits_for_the_cluster() -> None:
    def test(site: Site) -> None:
        claim = site.claim()
        assert reason(claim) == "cluster: m:1.0 waits for the cluster: The server is still connecting to the cluster"
        assert not site.cluster.reservations, "what it asks for depends on the nodes"
        site.cluster.tell(Unreachable("Nothing answers at ray-head:6379."))
        assert reason(claim).endswith("Nothing answers at ray-head:6379")
        site.cluster.join(a=2)
        (asked,) = site.cluster.reservations
        assert (asked.bundles.resources, reason(claim), claim.phase) == (
            ({"NPU": 1.0},),
            "",
            "being placed in the cluster",
        )

    in_loop(test)


def test_it_is_granted_and_says_what_it_waits_for_before() -> None:
    def test(site: Site) -> None:
        site.cluster.join(a=1, b=0)
        claim = site.claim(**SPREAD2)
        changes: list[str] = []
        claim.attach(Worker(changed=lambda: changes.append(reason(claim))))
        (asked,) = site.cluster.reservations
        site.cluster.pend(asked)
        assert changes == ["devices: m:1.0 needs 2 nodes with 1 NPU each; the cluster has 1 (a)"]
        site.cluster.show({"a": 1, "b": 1}, {"a": 1, "b": 0})
        assert changes[-1] == "devices: m:1.0 waits for 2 NPUs on 2 nodes; free now: 1 on a, 0 on b"
        site.cluster.grant(asked, "a", "b")
        assert (changes[-1], claim.lease and claim.lease.device_ids) == ("", "0,0")
        assert claim.lease is not None
        placement = claim.lease.placement
        assert placement is not None
        assert (placement.id, [(share.node, share.ranks) for share in placement.shares]) == (
            asked.id,
            [("a", (0,)), ("b", (1,))],
        )

    in_loop(test)


def test_satisfied_waits_for_the_grant() -> None:
    async def run() -> None:
        site = Site()
        site.cluster.join(a=1)
        claim = site.claim()
        waiting = asyncio.ensure_future(claim.satisfied())
        await asyncio.sleep(0)
        assert not waiting.done()
        site.cluster.grant(site.cluster.reservations[0], "a")
        await asyncio.wait_for(waiting, 120)
        await claim.turn()

    asyncio.run(run())


def test_a_lost_place_is_withdrawn_and_another_asked_for() -> None:
    def test(site: Site) -> None:
        site.cluster.join(a=1, b=1)
        claim = site.claim()
        withdrawn: list[str] = []
        claim.attach(Worker(withdrawn=lambda: withdrawn.append(claim.revoked)))
        (first,) = site.cluster.reservations
        site.cluster.grant(first, "a")
        site.cluster.lose(first, "node a or its holder is gone")
        assert withdrawn == ["node a or its holder is gone"]
        assert claim.lease is not None, "its group has not ended"
        assert site.cluster.reservations == [first]
        claim.renew()
        assert claim.lease is None
        (second,) = site.cluster.reservations
        assert second is not first
        site.cluster.grant(second, "b")
        assert claim.lease is not None
        assert not claim.revoked

    in_loop(test)


def test_a_place_that_is_lost_at_once_is_not_asked_for_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claims, "PAUSE", 3600.0)

    def test(site: Site) -> None:
        site.cluster.join(a=1)
        claim = site.claim()
        site.cluster.lose(site.cluster.reservations[0], "Node a has no msx-serve")
        assert not site.cluster.reservations
        assert reason(claim) == "cluster: m:1.0 waits for another place in the cluster: Node a has no msx-serve"
        site.cluster.show({"a": 1}, {"a": 1})
        assert not site.cluster.reservations

    in_loop(test)


def test_a_group_whose_node_is_taken_asks_for_several() -> None:
    """It asked for all on one node, and another model was faster."""

    def test(site: Site) -> None:
        site.cluster.join(a=2, b=2)
        claim = site.claim(**TP2)
        (first,) = site.cluster.reservations
        assert first.bundles.strategy == "STRICT_PACK"
        site.cluster.show({"a": 2, "b": 2}, {"a": 1, "b": 1})
        assert site.cluster.reservations == [first], "it may be this one that Ray is granting"
        site.cluster.pend(first)
        (second,) = site.cluster.reservations
        assert second.bundles.strategy == "PACK"
        site.cluster.pend(second)
        assert reason(claim) == "devices: m:1.0 waits for 2 NPUs; free now: 1 on a, 1 on b"
        site.cluster.grant(second, "b", "a")
        assert claim.lease is not None

    in_loop(test)


def test_release() -> None:
    def test(site: Site) -> None:
        site.cluster.join(a=1)
        granted, waiting = site.claim(), site.claim()
        site.cluster.grant(site.cluster.reservations[0], "a")
        for claim in (granted, waiting):
            claim.release()
            claim.release()
        assert not site.cluster.reservations
        assert not site.resources.claims
        site.cluster.show({"a": 1}, {"a": 1})
        assert not site.cluster.reservations

    in_loop(test)


def test_what_is_granted_stays_while_the_cluster_is_away() -> None:
    def test(site: Site) -> None:
        site.cluster.join(a=1)
        claim = site.claim()
        site.cluster.grant(site.cluster.reservations[0], "a")
        site.cluster.tell(Unreachable("Ray's head does not answer."))
        assert claim.lease is not None
        assert (claim.revoked, claim.shortage) == ("", None)
        other = site.claim()
        assert other.shortage is not None
        assert other.shortage.resource == "cluster"
        site.cluster.join(a=1)
        assert not claim.revoked

    in_loop(test)


def test_what_a_version_may_have() -> None:
    def test(site: Site) -> None:
        def version(**keys: Any) -> VersionInCluster:
            return site.resources.of("m:1.0", parse_model_config(keys)[0])

        assert version().device_type == "cpu", "the nodes are not known yet"
        site.cluster.join(a=8)
        assert (version().device_type, version().has_devices, version().capacity) == ("npu", True, None)
        assert version(deviceType="cpu").device_type == "cpu"
        assert version(deviceIds=[0, 1, 2], **TP2).capacity == 1
        version().check(1000)
        assert (version().default_workers, version().default_most, version().room(0)) == (1, 1, None)

    in_loop(test)
