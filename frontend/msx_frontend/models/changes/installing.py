"""Installs versions that are registered: saved, started, and taken back where they cannot be started."""

import asyncio
import logging
from functools import partial

from msx_frontend.config import ServerConfig
from msx_frontend.management_errors import Conflict, NotSaved, WorkersNotStarted
from msx_frontend.models.changes.change import Changes
from msx_frontend.models.changes.operations import Operations, check_all_start, check_parts, start_parts
from msx_frontend.models.changes.records import Counts
from msx_frontend.models.changes.registering import Confirming, Forgetting, Registering, TakingBack, check_reached
from msx_frontend.models.changes.unregistration import Unregistration
from msx_frontend.models.changes.workflow_nodes import WorkflowNodes
from msx_frontend.models.registration import Registration
from msx_frontend.models.registry import Registry
from msx_frontend.models.versions.model_version import ModelVersion
from msx_frontend.models.versions.states import ModelState
from msx_frontend.models.versions.worker_counts import worker_counts

log = logging.getLogger("msx.management")

_STARTING = (ModelState.LOADING, ModelState.WAITING, ModelState.DEGRADED)


class Installing:
    """The caller has the version for itself. What fails raises ServiceError, and leaves nothing."""

    def __init__(
        self,
        config: ServerConfig,
        registry: Registry,
        changes: Changes,
        operations: Operations,
        unregistration: Unregistration,
        nodes: WorkflowNodes,
    ) -> None:
        self._config, self._registry, self._changes = config, registry, changes
        self._operations, self._unregistration, self._nodes = operations, unregistration, nodes

    async def install(self, version: ModelVersion, wanted: Registration) -> None:
        """Serve a version, which is saved first. Where the answer waits for its workers, the next start knows it from
        then on. A version that takes the place of another is saved when it is ready to."""
        counts = [(part, worker_counts(part, wanted, self._config)) for part in version.parts]
        check_parts(counts)
        old = self.replaced(version, wanted)
        if old is not None and (wanted.replace or wanted.synchronous):
            await self._replace(old, version, wanted, counts)
        else:
            await self._add(version, wanted, counts)

    def replaced(self, version: ModelVersion, wanted: Registration) -> ModelVersion | None:
        """The version whose place it takes. Raises Conflict."""
        name, number = version.labels
        self._nodes.refuse(name)
        if not self._registry.has(name, number):
            return None
        found = self._registry.find(name, number)
        if not wanted.replace and not found.status.lost and not found.forgotten:
            raise Conflict(f"Model version {number} is already registered for model {name}")
        return found

    async def _add(self, version: ModelVersion, wanted: Registration, counts: Counts) -> None:
        try:
            await self._changes.make(self._registering(version, wanted, counts, answered=not wanted.synchronous))
            await start_parts(counts)
            if wanted.synchronous:
                await self._first_workers(version)
                await self._changes.make(Confirming(self._registry, version))
        except BaseException:
            await asyncio.shield(self._take_back(version))
            raise
        if not wanted.at_startup and version.status.state is not ModelState.READY:
            self._operations.in_background(self._watch(version))

    async def _replace(self, old: ModelVersion, version: ModelVersion, wanted: Registration, counts: Counts) -> None:
        try:
            check_reached(self._registry, version, old)
            await start_parts(counts)
            await self._first_workers(version)
            if wanted.replace:  # what is missing may be what the old one holds
                check_all_start(version)
            await self._changes.make(self._registering(version, wanted, counts, answered=True))
        except BaseException:
            await self._changes.settled()
            if not self._registry.holds(version):
                await self._unregistration.take_back(version)
            raise

    def _registering(
        self, version: ModelVersion, wanted: Registration, counts: Counts, *, answered: bool
    ) -> Registering:
        return Registering(
            self._registry,
            version,
            counts,
            partial(self.replaced, version, wanted),
            lambda old: self._operations.in_background(self._unregistration.close(old)),
            answered=answered,
        )

    async def _first_workers(self, version: ModelVersion) -> None:
        try:
            await self._operations.workers_settled(version)
        except WorkersNotStarted:
            if version.environment.failure is not None:
                raise version.environment.failure from None
            raise

    async def _take_back(self, version: ModelVersion) -> None:
        change = TakingBack(self._registry, version)
        try:
            await self._changes.make(change)
        except NotSaved as error:
            log.error("the registration of model %s %s stays in the state: %s", *version.labels, error.message)
            change.apply()
        await self._unregistration.take_back(version)

    async def _watch(self, version: ModelVersion) -> None:
        """Take a registration back in the state where its workers are given up before one has served. Describe goes on
        to say why."""
        while version.status.state in _STARTING and not version.status.served:
            await version.status.wait()
        if version.status.state is ModelState.FAILED and not version.status.served:
            await self._changes.make(Forgetting(self._registry, version))
