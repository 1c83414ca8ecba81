"""Triton's statistics of model versions."""

from collections.abc import Callable
from typing import Any

from msx_frontend.metrics.inference_statistics import Total
from msx_frontend.models.registry import Registry
from msx_frontend.models.versions.model_version import ModelVersion

_NONE = {"count": 0, "ns": 0}


def statistics(
    registry: Registry, name: str | None, number: str | None, shown: Callable[[str], bool] = lambda name: True
) -> dict[str, Any]:
    """The statistics of one version, of all versions of a name, or of every version whose name may be shown.

    Raises ModelNotFound, ModelVersionNotFound.
    """
    if name is None:
        versions = [version for version in registry.all_versions() if shown(version.source.name)]
    elif number is None:
        versions = registry.versions_of(name)
    else:
        versions = [registry.find(name, number)]
    return {"model_stats": [_of(version) for version in versions]}


def _of(version: ModelVersion) -> dict[str, Any]:
    """Input and output are decoded and encoded within `compute_infer`: they are not measured apart."""
    seen = version.metrics.statistics
    queue, compute = _duration(seen.queue), _duration(seen.compute)
    unmeasured = {"count": seen.compute.count, "ns": 0}
    return {
        "name": version.source.name,
        "version": version.source.version,
        "last_inference": int(seen.last * 1000),
        "inference_count": seen.success.count,
        "execution_count": sum(total.count for total in seen.batches.values()),
        "inference_stats": {
            "success": _duration(seen.success),
            "fail": _duration(seen.fail),
            "queue": queue,
            "compute_input": unmeasured,
            "compute_infer": compute,
            "compute_output": unmeasured,
            "cache_hit": _NONE,
            "cache_miss": _NONE,
        },
        "batch_stats": [_batch(size, total) for size, total in sorted(seen.batches.items())],
    }


def _batch(size: int, total: Total) -> dict[str, Any]:
    unmeasured = {"count": total.count, "ns": 0}
    return {
        "batch_size": size,
        "compute_input": unmeasured,
        "compute_infer": _duration(total),
        "compute_output": unmeasured,
    }


def _duration(total: Total) -> dict[str, int]:
    return {"count": total.count, "ns": int(total.seconds * 1e9)}
