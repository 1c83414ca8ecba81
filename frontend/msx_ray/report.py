"""The cluster in the words of `GET /cluster`: its nodes, who holds what, and what waits for what."""

from collections.abc import Iterable
from typing import Any

from msx_frontend.plugins.launchers import in_drivers_order
from msx_ray.claims import ClusterClaim
from msx_ray.messages import ClusterNode
from msx_ray.resources import ClusterResources


def cluster_report(resources: ClusterResources) -> dict[str, Any]:
    cluster = resources.cluster
    granted = [claim for claim in resources.claims if claim.lease is not None]
    waiting = [claim for claim in resources.claims if claim.lease is None]
    return {
        "address": cluster.address,
        "head": cluster.gcs or None,
        "rayVersion": cluster.ray_version or None,
        "server": cluster.id,
        "problem": cluster.problem or None,
        "nodes": [_node(node, granted) for node in cluster.nodes],
        "placed": [_placed(claim) for claim in granted],
        "waiting": [_waiting(claim) for claim in waiting],
    }


def held_on(node: ClusterNode, claims: Iterable[ClusterClaim]) -> list[str]:
    """The devices of a node that this server's groups have."""
    placements = [claim.lease.placement for claim in claims if claim.lease is not None]
    shares = (share for placement in placements if placement is not None for share in placement.shares)
    return list(in_drivers_order(name for share in shares if share.node_id == node.id for name in share.devices))


def _node(node: ClusterNode, granted: Iterable[ClusterClaim]) -> dict[str, Any]:
    return {
        "id": node.id,
        "name": node.name,
        "address": node.address,
        "alive": node.alive,
        "resources": node.resources,
        "free": node.free,
        "devices": held_on(node, granted),
    }


def _placed(claim: ClusterClaim) -> dict[str, Any]:
    assert claim.lease is not None
    placement = claim.lease.placement
    assert placement is not None
    shares = [
        {"node": share.node, "nodeId": share.node_id, "ranks": list(share.ranks), "devices": list(share.devices)}
        for share in placement.shares
    ]
    return {**_who(claim), "reservation": placement.id, "shares": shares}


def _waiting(claim: ClusterClaim) -> dict[str, Any]:
    shortage = claim.shortage
    bundles = claim.bundles
    return {
        **_who(claim),
        "resource": shortage.resource if shortage else None,
        "reason": f"{shortage.reason}." if shortage else "It is being placed.",
        "needs": list(bundles.resources) if bundles else None,
        "strategy": bundles.strategy if bundles else None,
    }


def _who(claim: ClusterClaim) -> dict[str, Any]:
    model, _, version = claim.model_key.rpartition(":")
    return {"model": model, "version": version, "worker": str(claim.worker)}
