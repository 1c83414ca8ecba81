"""Why a cluster has no room for a worker group now, in words."""

from collections.abc import Sequence

from msx_ray.messages import ClusterNode
from msx_ray.reservation import Bundles


def missing_room(bundles: Bundles, nodes: Sequence[ClusterNode]) -> str:
    """Resources that the group needs and those there are, a sentence's predicate: the cluster may never have them, as
    it is, or not now."""
    device = bundles.resource
    alive = [node for node in nodes if node.alive]
    return _never(bundles, device, alive) or _not_now(bundles, device, alive)


def _never(bundles: Bundles, device: str, alive: Sequence[ClusterNode]) -> str:
    sizes = [one[device] for one in bundles.resources]
    has = {node.name: node.resources.get(device, 0) for node in alive}
    fitting = [node.name for node in alive if node.resources.get(device, 0) >= max(sizes)]
    if not fitting:
        best = max(has, key=lambda name: has[name], default=None)
        largest = f"the largest of the cluster has {has[best]:g} ({best})" if best else "the cluster has no nodes now"
        return f"needs a node with {_amount(max(sizes), device)}; {largest}"
    if bundles.strategy == "STRICT_SPREAD" and len(fitting) < len(sizes):
        return (
            f"needs {len(sizes)} nodes with {_amount(max(sizes), device)} each; the cluster has {len(fitting)} "
            f"({', '.join(fitting)})"
        )
    whole = sum(node.resources.get(device, 0) for node in alive)
    return f"needs {_amount(sum(sizes), device)}; the whole cluster has {whole:g}" if whole < sum(sizes) else ""


def _not_now(bundles: Bundles, device: str, alive: Sequence[ClusterNode]) -> str:
    sizes = [one[device] for one in bundles.resources]
    apart = f" on {len(sizes)} nodes" if bundles.strategy == "STRICT_SPREAD" and len(sizes) > 1 else ""
    free = ", ".join(f"{node.free.get(device, 0):g} on {node.name}" for node in alive if node.resources.get(device))
    return f"waits for {_amount(sum(sizes), device)}{apart}; free now: {free}"


def _amount(count: float, device: str) -> str:
    return f"{count:g} {device}{'s' if count > 1 else ''}"
