"""Number of processes of vLLM that compute on this machine's processor, and share its cores and memory."""

from collections.abc import Iterable

from msx_frontend.models.versions.engine_choice import is_of_vllm
from msx_frontend.models.versions.model_version import ModelVersion


def host_processes(versions: Iterable[ModelVersion]) -> int:
    """Count those of all workers that there may be: a worker keeps the share that it starts with."""
    return sum(_of(part) for version in versions for part in version.parts)


def _of(version: ModelVersion) -> int:
    if version.resources.has_devices or not is_of_vllm(version.source):
        return 0
    return max(version.workers.most, len(version.workers.all)) * (version.config.layout.devices or 1)
