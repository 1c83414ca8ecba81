"""Unregistration of versions: their requests may finish, then the content that no version needs any more is removed."""

import asyncio

from msx_frontend.archives.model_store import ModelStore
from msx_frontend.environments.environments import Environments
from msx_frontend.models.registry import Registry
from msx_frontend.models.versions.model_source import ModelSource
from msx_frontend.models.versions.model_version import ModelVersion


class Unregistration:
    def __init__(self, registry: Registry, store: ModelStore, environments: Environments) -> None:
        self._registry = registry
        self._store = store
        self._environments = environments
        self._leaving: set[ModelVersion] = set()

    def all_versions(self) -> list[ModelVersion]:
        """The registered versions, and those that are being unregistered."""
        return [*self._registry.all_versions(), *self._leaving]

    async def take_back(self, version: ModelVersion) -> None:
        """Remove a version whose registration failed; the caller releases its content."""
        self._registry.remove(version)
        await asyncio.shield(version.close(0))
        await self._environments.forget(version.environment)

    async def close(self, version: ModelVersion) -> None:
        """Close a version that has left the registry: its requests may finish for `responseTimeout`."""
        self._leaving.add(version)
        try:
            await version.close(version.config.response_timeout)
        finally:
            self._leaving.discard(version)
        await self._environments.forget(version.environment)
        await self.free(version.source)

    async def free(self, source: ModelSource) -> None:
        """Release its content and its download, unless other versions use them."""
        await self._store.contents.release(source.digest)
        await self._store.forget(source.archive, [other.source.archive for other in self.all_versions()])
