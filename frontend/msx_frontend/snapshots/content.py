"""The content of a snapshot: settings that are not the defaults, and the models with their settings."""

import re
import time
from collections.abc import Iterable
from typing import Any

import msgspec

from msx_frontend.config import ServerConfig
from msx_frontend.models.registry import Registry
from msx_frontend.models.versions.model_version import ModelVersion

_TORCHSERVE_NAMES = {"number_of_npu": "number_of_gpu"}

NOT_WRITTEN = {
    "disable_token_authorization",
    "enable_model_api",
    "load_models",
    "model_snapshot",
    "snapshots",
}
"""Keys that open the server must be given at each start, not by a forgotten file. `model_snapshot` has the models."""


def properties_of(config: ServerConfig) -> dict[str, str]:
    """The settings that differ from the defaults, and the folders, which the next start needs."""
    found: dict[str, str] = {}
    defaults = msgspec.structs.asdict(ServerConfig())
    for name, value in msgspec.structs.asdict(config).items():
        if name not in NOT_WRITTEN and value != defaults[name]:
            found[_TORCHSERVE_NAMES.get(name, name)] = text_of(value)
    folders = {"model_store": config.model_store, "state_dir": config.state_dir, "cache_dir": config.cache_dir}
    return {**found, **{name: str(folder.resolve()) for name, folder in folders.items() if folder}}


def models_of(registry: Registry, name: str) -> str:
    """The value of `model_snapshot`: Gson's pretty JSON, members in TorchServe's order."""
    models: dict[str, dict[str, Any]] = {}
    for version in registry.all_versions():
        if version.source.workflow or version.forgotten:
            continue  # TorchServe's have no nodes either
        of_name = models.setdefault(version.source.name, {})
        of_name[version.source.version] = _version(version, registry.is_default(version))
    snapshot = {
        "name": name,
        "modelCount": sum(map(len, models.values())),
        "created": int(time.time() * 1000),
        "models": models,
    }
    return msgspec.json.format(msgspec.json.encode(snapshot), indent=2).decode()


def _version(version: ModelVersion, is_default: bool) -> dict[str, Any]:
    source, config = version.source, version.config
    level = config.layout.ranks if config.layout.ranks > 1 else config.parallel_level
    kept = version.record  # as the state has it, also where workers are still being started
    least, most = (kept.min_workers, kept.max_workers) if kept else (version.workers.least, version.workers.most)
    return {
        "defaultVersion": is_default,
        "marName": source.url,  # the whole URL of what comes from elsewhere: a name would not load it again
        "minWorkers": least,
        "maxWorkers": most,
        "batchSize": config.batch_size,
        "maxBatchDelay": config.max_batch_delay,
        "responseTimeout": config.response_timeout,
        "startupTimeout": config.startup_timeout,
        "runtimeType": source.manifest.get("runtime", "python"),
        **({"parallelLevel": level} if level > 1 else {}),
    }


def text_of(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, re.Pattern):
        return str(value.pattern)
    if isinstance(value, (dict, msgspec.Struct)):
        return msgspec.json.encode(value).decode()
    if isinstance(value, Iterable) and not isinstance(value, str):
        return ",".join(text_of(one) for one in value)
    return str(value)
