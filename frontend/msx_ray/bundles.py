"""Which bundles of a cluster a worker group asks for."""

from collections.abc import Sequence

from msx_core.config import ModelConfig, ParallelLayout
from msx_frontend.plugins.accelerators import resources_of_devices
from msx_ray.messages import ClusterNode
from msx_ray.reservation import CPU, Bundles


def device_of(config: ModelConfig, nodes: Sequence[ClusterNode]) -> str:
    """The resource that each rank takes one of: a device, unless the model is kept off them."""
    return CPU if config.device_type == "cpu" else kind_of(nodes)


def kind_of(nodes: Sequence[ClusterNode]) -> str:
    """The first kind of device that the cluster has; CPU without any."""
    return next((name for name in resources_of_devices() if any(node.resources.get(name) for node in nodes)), CPU)


def bundles_of(config: ModelConfig, nodes: Sequence[ClusterNode]) -> Bundles:
    """Bundles of one group, as the cluster is now."""
    layout, device = config.layout, device_of(config, nodes)
    if layout.ranks == 1:
        return _made([layout.devices or 1], [1], device, "PACK")
    if config.nodes > 1:
        return _equal(layout.ranks, config.nodes, device, "STRICT_SPREAD")
    if config.placement == "stagesApart":
        return _equal(layout.ranks, layout.pipeline_stages, device, "STRICT_SPREAD")
    if config.placement == "spread":
        return _equal(layout.ranks, layout.ranks, device, "SPREAD")
    return _packed(layout, device, nodes)


def _packed(layout: ParallelLayout, device: str, nodes: Sequence[ClusterNode]) -> Bundles:
    """All on one node that has room now, with one agent; else on as few as Ray finds."""
    if any(node.alive and node.free.get(device, 0) >= layout.ranks for node in nodes):
        return _equal(layout.ranks, 1, device, "STRICT_PACK")
    return _equal(layout.ranks, layout.ranks, device, "PACK")


def _equal(ranks: int, bundles: int, device: str, strategy: str) -> Bundles:
    each = ranks // bundles
    return _made([each] * bundles, [each] * bundles, device, strategy)


def _made(devices: Sequence[int], ranks: Sequence[int], device: str, strategy: str) -> Bundles:
    return Bundles(tuple({device: float(count)} for count in devices), tuple(ranks), strategy)
