"""Triton's model repository: an index of what is registered or lies in the model store, load and unload."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msx_core.service_errors import ModelNotFound, ServiceError
from msx_frontend.archives.suffixes import ARCHIVE_SUFFIXES
from msx_frontend.management_errors import ModelApiDisabled
from msx_frontend.models.changes.operations import check_all_start
from msx_frontend.models.management import Management
from msx_frontend.models.registration import Registration
from msx_frontend.models.versions.model_version import ModelVersion
from msx_frontend.models.versions.states import ModelState
from msx_frontend.public_text import public_text

READY, LOADING, UNAVAILABLE = "READY", "LOADING", "UNAVAILABLE"


class Unsupported(ServiceError):
    status, type, grpc_code = 501, "UnsupportedOperationException", "UNIMPLEMENTED"


class Repository:
    """`enabled` is the key enable_model_api: without it nothing is loaded or unloaded. Methods raise ServiceError."""

    def __init__(self, management: Management, *, enabled: bool) -> None:
        self._management, self._enabled = management, enabled

    async def index(self, only_ready: bool) -> list[dict[str, str]]:
        """Registered versions, then archives of the model store that are not registered."""
        registered = [_entry(version) for version in self._management.registry.all_versions()]
        if only_ready:
            return [entry for entry in registered if entry["state"] == READY]
        archives = await asyncio.to_thread(self._management.store.all_archives)
        used = {version.source.archive.file_name for version in self._management.registry.all_versions()}
        return registered + [_archive(_stem(path)) for path in archives if path.name not in used]

    async def load(self, name: str, parameters: Mapping[str, Any]) -> None:
        """Start workers for the versions of `name` that have none, or register the archive of this name."""
        self._check_enabled()
        if parameters:
            raise Unsupported(
                f"Parameters of load are not served ({', '.join(parameters)}): pack them into the archive's "
                "model-config.yaml, and load it."
            )
        if name not in self._management.registry.names():
            await self._register(name)
        for version in self._management.registry.versions_of(name):
            if not _has_workers(version):
                least = version.config.min_workers or 1
                most = max(version.config.max_workers or 0, least)
                await self._management.scale(*version.labels, least, most, wait=True)
            if not answers(version):
                check_all_start(version)

    async def unload(self, name: str) -> None:
        """Stop the workers of all versions of `name`; they stay registered."""
        self._check_enabled()
        self._management.registry.aliases.refuse(name)
        for version in self._management.registry.versions_of(name):
            await self._management.scale(*version.labels, 0, 0, wait=True)

    async def _register(self, name: str) -> None:
        archives = await asyncio.to_thread(self._management.store.all_archives)
        path = next((path for path in archives if _stem(path) == name), None)
        if path is None:
            raise ModelNotFound(name)
        await self._management.register(Registration(url=path.name, model_name=name, initial_workers=1))

    def _check_enabled(self) -> None:
        if not self._enabled:
            raise ModelApiDisabled


def answers(version: ModelVersion) -> bool:
    """Whether a request would find a worker now; unlike the probes', a version without any does not count."""
    return version.serving and version.workers.answer


def _has_workers(version: ModelVersion) -> bool:
    return bool(version.workers.all) and version.status.state is not ModelState.FAILED


def _entry(version: ModelVersion) -> dict[str, str]:
    entry = {"name": version.source.name, "version": version.source.version, "state": READY, "reason": ""}
    if not answers(version):
        entry["state"] = LOADING if _has_workers(version) else UNAVAILABLE
        entry["reason"] = public_text(version.status.reason) or ("loading" if _has_workers(version) else "unloaded")
    return entry


def _archive(name: str) -> dict[str, str]:
    return {"name": name, "version": "", "state": UNAVAILABLE, "reason": "not registered"}


def _stem(path: Path) -> str:
    return next((path.name.removesuffix(end) for end in ARCHIVE_SUFFIXES if path.name.endswith(end)), path.name)
