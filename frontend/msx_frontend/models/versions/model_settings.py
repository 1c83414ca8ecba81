"""The settings of a version: those of its registration, else its yaml, else the key `models`, else the defaults."""

import logging
from pathlib import Path

from msx_archiver.cache import UnpackedModel
from msx_core.config import ConfigError, ModelConfig, load_model_config
from msx_frontend.config import ServerConfig
from msx_frontend.management_errors import InvalidModel
from msx_frontend.models.registration import Registration
from msx_frontend.models.versions.cluster_rules import check_for_cluster

SERVABLE_PLACES = 10_000
"""`jobQueueSize` of a servable whose yaml does not say: MindSpore Serving's limit."""

log = logging.getLogger("msx.management")


def model_settings(archive: Path, unpacked: UnpackedModel, wanted: Registration, server: ServerConfig) -> ModelConfig:
    """Raises InvalidModel, which names the archive and the file in it, not the folder of the unpacked file."""
    model = unpacked.manifest.model
    name = model.config_file
    try:
        config, warnings = load_model_config(unpacked.path / name) if name else (ModelConfig(), [])
        said = server.defaults_of(wanted.model_name or model.model_name or "", model.model_version)
        config = config.with_overrides(**wanted.overrides()).with_defaults(
            batch_size=said.batch_size,
            max_batch_delay=said.max_batch_delay,
            response_timeout=said.response_timeout or server.default_response_timeout,
            startup_timeout=said.startup_timeout or server.default_startup_timeout,
            job_queue_size=SERVABLE_PLACES if _is_servable(unpacked, wanted) else server.job_queue_size,
            max_worker_memory=server.max_worker_memory,
            bind_cores=server.bind_cores,
        )
        warnings += check_for_cluster(config, clustered=server.cluster_address is not None)
    except ConfigError as error:
        text = str(error).removeprefix(f"{unpacked.path}/")
        raise InvalidModel(f"{archive.name}: {text}") from None
    for warning in warnings:
        log.warning("%s: %s: %s", archive.name, name, warning)
    return config


def _is_servable(unpacked: UnpackedModel, wanted: Registration) -> bool:
    return (wanted.handler or unpacked.manifest.model.handler) == "servable"
