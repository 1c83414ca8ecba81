"""How many workers a version starts with."""

from msx_frontend.config import ServerConfig
from msx_frontend.models.registration import Registration
from msx_frontend.models.versions.model_version import ModelVersion


def worker_counts(version: ModelVersion, wanted: Registration, server: ServerConfig) -> tuple[int, int]:
    """The least and the most.

    TorchServe's order: the yaml's minWorkers, the call, at the start the key `models`, default_workers_per_model.
    """
    config = version.config
    if version.workers.follow_load:
        return _bounds(version, wanted, server)
    if config.min_workers:
        return config.min_workers, max(config.max_workers or 0, config.min_workers)
    if wanted.initial_workers is not None:
        return wanted.initial_workers, wanted.initial_workers
    said = server.defaults_of(version.source.model, version.source.version)
    if version.source.at_startup and said.min_workers is not None:
        return said.min_workers, max(said.max_workers or 0, said.min_workers)
    default = server.default_workers_per_model
    if version.source.at_startup and not default:
        default = version.resources.default_workers
    if version.source.stage_of:
        default = max(default, 1)  # a request passes all stages: one without a worker would stop it
    return default, default


def _bounds(version: ModelVersion, wanted: Registration, server: ServerConfig) -> tuple[int, int]:
    """Bounds of workers that follow the load: the same order for each of them, with 0 for a minimum of the yaml, too.
    Else 1, and as many as TorchServe would start, `workersPerDevice` times."""
    config, said = version.config, server.defaults_of(version.source.model, version.source.version)
    at_start = version.source.at_startup
    leasts = (config.min_workers, wanted.initial_workers, said.min_workers if at_start else None, 1)
    least = next(count for count in leasts if count is not None)
    most = config.max_workers or (said.max_workers if at_start else None) or version.resources.default_most
    return least, max(most, least, 1)
