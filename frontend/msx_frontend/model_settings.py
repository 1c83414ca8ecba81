"""The settings of a model version: what its registration asks for, else its yaml, else the server's defaults."""

from __future__ import annotations

import logging
from pathlib import Path

from msx_archiver.cache import UnpackedModel
from msx_frontend.config import ServerConfig
from msx_frontend.errors import InvalidModel
from msx_frontend.registration import Registration
from msx_sdk.config import ConfigError, ModelConfig, load_model_config

log = logging.getLogger("msx.management")


def model_settings(archive: Path, unpacked: UnpackedModel, wanted: Registration, server: ServerConfig) -> ModelConfig:
    """Raises InvalidModel, which names the archive and the file in it, not where that is unpacked."""
    name = unpacked.manifest.model.config_file
    try:
        config, warnings = load_model_config(unpacked.path / name) if name else (ModelConfig(), [])
        config = config.with_overrides(**wanted.overrides()).with_defaults(
            response_timeout=server.default_response_timeout,
            startup_timeout=server.default_startup_timeout,
            job_queue_size=server.job_queue_size,
        )
    except ConfigError as error:
        text = str(error).removeprefix(f"{unpacked.path}/")
        raise InvalidModel(f"{archive.name}: {text}") from None
    for warning in warnings:
        log.warning("%s: %s: %s", archive.name, name, warning)
    return config
