"""The nodes of workflows: served like other versions, but stored and removed with their workflow."""

import asyncio

from msx_frontend.management_errors import Conflict
from msx_frontend.models.changes.change import Changes
from msx_frontend.models.changes.operations import Operations, check_all_start, start_workers
from msx_frontend.models.changes.registering import AddingNode
from msx_frontend.models.changes.unregistration import Unregistration
from msx_frontend.models.registry import Registry
from msx_frontend.models.versions.factory import VersionFactory
from msx_frontend.models.versions.model_source import ModelSource
from msx_frontend.models.versions.model_version import ModelVersion
from msx_frontend.models.versions.states import ModelState


class WorkflowNodes:
    def __init__(
        self,
        registry: Registry,
        changes: Changes,
        operations: Operations,
        unregistration: Unregistration,
        factory: VersionFactory,
    ) -> None:
        self._registry = registry
        self._changes = changes
        self._operations = operations
        self._unregistration = unregistration
        self._factory = factory

    async def add(self, source: ModelSource, least: int, most: int, *, wait: bool) -> ModelVersion:
        """Serve `source`, whose content the caller has unpacked. Raises ServiceError; then it is released."""
        try:
            version = await self._factory.made(source)
            async with self._operations.only(*version.labels):
                await self._start(version, least, most, wait)
        except BaseException:
            await asyncio.shield(self._unregistration.free(source))
            raise
        return version

    async def remove(self, version: ModelVersion) -> None:
        """Unregister a node, unless the server has closed it at its end."""
        if version.status.state in (ModelState.DRAINING, ModelState.GONE):
            return
        self._registry.remove(version)
        await asyncio.shield(self._unregistration.close(version))

    async def _start(self, version: ModelVersion, least: int, most: int, wait: bool) -> None:
        await self._changes.make(AddingNode(self._registry, version))
        try:
            await start_workers(version, least, most)
            if wait:
                await self._operations.workers_settled(version)
                check_all_start(version)
        except BaseException:
            await self._unregistration.take_back(version)
            raise

    def refuse(self, name: str) -> None:
        """Raises Conflict for a model that is a node."""
        owners = [version.source.workflow for version in self._registry.all_versions() if version.source.name == name]
        if any(owners):
            raise Conflict(f"Model {name} is a node of workflow {owners[0]}: it comes and goes with that workflow.")
