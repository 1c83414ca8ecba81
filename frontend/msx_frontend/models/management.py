"""The operations on models: register, scale, unregister. REST, gRPC and the start of the server call these."""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from msx_core.config import ModelConfig
from msx_core.generation import AdapterFiles
from msx_core.service_errors import ServiceError
from msx_frontend.archives.archive_url import ArchiveUrl
from msx_frontend.archives.model_store import ModelStore
from msx_frontend.config import ServerConfig
from msx_frontend.environments.environments import Environments
from msx_frontend.management_errors import InvalidModel
from msx_frontend.metrics import ServerMetrics
from msx_frontend.models.changes.change import Changes
from msx_frontend.models.changes.installing import Installing
from msx_frontend.models.changes.operations import Operations, start_parts
from msx_frontend.models.changes.records import Counts, new_record
from msx_frontend.models.changes.registering import GivingUp, Removing, Unregistering
from msx_frontend.models.changes.routing import DividingTraffic, ReplacingAliases, SettingDefault
from msx_frontend.models.changes.scaling import Scaling
from msx_frontend.models.changes.settings import ChangingSleep, LoadingAdapters
from msx_frontend.models.changes.unregistration import Unregistration
from msx_frontend.models.changes.workflow_nodes import WorkflowNodes
from msx_frontend.models.registration import Registration
from msx_frontend.models.registry import Registry
from msx_frontend.models.state.state import State
from msx_frontend.models.state.store import StoredVersion
from msx_frontend.models.traffic import TrafficRule
from msx_frontend.models.versions.factory import VersionFactory
from msx_frontend.models.versions.model_source import ModelSource
from msx_frontend.models.versions.model_version import ModelVersion
from msx_frontend.models.versions.spawn import Spawner
from msx_frontend.models.versions.states import ModelState
from msx_frontend.resources.supply import Supply

log = logging.getLogger("msx.management")

RUNNING_CALL = 0.5
"""Seconds in which a call without a client has to end when the server stops."""

LOOK_EVERY = 0.02


class Management:
    """Every change is checked, saved, and only then in force (`changes`). One call per model version at a time."""

    def __init__(
        self,
        config: ServerConfig,
        registry: Registry,
        store: ModelStore,
        supply: Supply,
        state: State,
        spawner: Spawner,
        metrics: ServerMetrics,
        environments: Environments | None = None,
        changed: Callable[[], None] = lambda: None,
    ) -> None:
        """`changed` is called when what is served has changed, for good."""
        environments = environments or Environments(Path(), config, {})
        self._config = config
        self.registry = registry
        self.store = store
        self._state = state
        self.operations = Operations(config.unregister_model_timeout)
        self.changes = Changes(state, self.operations, changed)
        self._unregistration = Unregistration(registry, store, environments)
        store.used_by(lambda: [version.source.archive for version in self._unregistration.all_versions()])
        self._factory = VersionFactory(config, store, supply, spawner, metrics, environments, registry.paths.loaded)
        self.nodes = WorkflowNodes(registry, self.changes, self.operations, self._unregistration, self._factory)
        self._installing = Installing(config, registry, self.changes, self.operations, self._unregistration, self.nodes)

    # -- register --

    async def register(self, wanted: Registration) -> ModelVersion:
        """Register a version and start its workers; waits for them when `synchronous`.

        Raises ServiceError; the version and its files are removed then.
        """
        url = ArchiveUrl.parse(wanted.url)
        name = wanted.model_name or ""
        with self.operations.under_way():
            return await self._register(url, name, wanted)

    async def _register(self, url: ArchiveUrl, name: str, wanted: Registration) -> ModelVersion:
        async with self.store.obtained(url, signed=wanted.s3_sse_kms, replace=wanted.replace, name=name) as found:
            return await self.register_from(found.path, msgspec.structs.replace(wanted, url=found.url))

    async def register_from(self, path: Path, wanted: Registration) -> ModelVersion:
        wanted = msgspec.structs.replace(wanted, rows_compared=True)
        async with self._factory.built(path, wanted) as version:
            self._installing.replaced(version, wanted)  # a conflict is told before another call is waited for
            async with self.operations.only(*version.labels):
                await self._installing.install(version, wanted)
        return version

    async def restore(self, path: Path, wanted: Registration, stored: StoredVersion, *, adopted: bool = False) -> None:
        """Register a version of the state again, with the workers that it had; or one of a snapshot (`adopted`), which
        is written to the state. Raises ServiceError."""
        async with self._factory.built(path, wanted) as version:
            if version.labels != (stored.name, stored.version):
                raise InvalidModel(f"{path} holds {' '.join(version.labels)} now; register it anew.")
            counts = _stored_workers(version, wanted, stored)
            if adopted:
                stored = new_record(version, counts, is_default=self.registry.becomes_default(version))
                await self._state.save(stored)
            self._add(version, stored)
            try:
                await start_parts(counts)
            except BaseException:
                await self._unregistration.take_back(version)
                raise

    def _add(self, version: ModelVersion, record: StoredVersion) -> None:
        self.registry.add(version)
        version.record = record

    async def adopt_lost(self, wanted: Registration, stored: StoredVersion, reason: str) -> None:
        """Register a version of a snapshot whose archive is missing as FAILED, and write it to the state."""
        version = self.keep_lost(wanted, stored, reason)
        await self._state.save(msgspec.structs.replace(stored, is_default=self.registry.is_default(version)))

    def keep_lost(self, wanted: Registration, stored: StoredVersion, reason: str) -> ModelVersion:
        """Register a version whose archive is missing: it is FAILED for `reason` until it is registered again or
        unregistered."""
        config = ModelConfig().with_overrides(**wanted.overrides())
        source = ModelSource(
            stored.name, stored.version, stored.url, "", Path(), "", {}, config, wanted.to_dict(), True
        )
        version = self._factory.make_lost(source, reason, stored.min_workers, stored.max_workers)
        self._add(version, stored)
        return version

    # -- scale, default, unregister --

    async def scale(
        self,
        name: str,
        number: str | None,
        min_workers: int,
        max_workers: int,
        wait: bool,
        stage: str | None = None,
        autoscaling: bool | None = None,
    ) -> None:
        """Scale a version: all stages, where it has some and `stage` names none. `autoscaling` switches it on or off,
        of all stages; None leaves it as it is.

        Raises BadRequest for max < min or an unknown stage, WorkersNotStarted when the new workers fail or could never
        start.
        """
        self.registry.aliases.refuse(name)
        labels, bounds = self.registry.find(name, number).labels, (min_workers, max_workers)
        change = Scaling(self.registry, labels, stage, bounds, autoscaling, self._begin_scaling)
        await self.changes.make(change)
        if wait:
            await self._scaled(change)

    def _begin_scaling(self, change: Scaling) -> asyncio.Task[None]:
        return self.operations.in_background(self._scale(change))

    async def _scale(self, change: Scaling) -> None:
        try:
            async with self.operations.only(*change.labels):
                if self.registry.holds(change.version):
                    await change.start()
                else:  # another has its place since: the wish is saved, and begun, for that one
                    await self.changes.make(change)
        except ServiceError as error:
            change.failed(error)
            raise

    async def _scaled(self, change: Scaling) -> None:
        while change.work is not None and not change.work.done():
            await self.operations.over(change.work)
        if change.failure is not None:
            raise change.failure
        await self.operations.workers_settled(change.version.part(change.stage))

    async def change_sleep(self, name: str, number: str | None, level: int) -> ModelVersion:
        """0 wakes it. A restarted server has the level again. Raises ServiceError; BadRequest for what cannot sleep."""
        self.registry.aliases.refuse(name)
        version = self.registry.find(name, number)
        async with self.operations.only(*version.labels):
            version = self.registry.find(*version.labels)
            await self.changes.make(ChangingSleep(self.registry, version, level))
            await (version.fall_asleep(level) if level else version.wake_up())
        return version

    async def set_default(self, name: str, number: str) -> None:
        """All requests without a version go there. Raises ModelNotFound, ModelVersionNotFound, Conflict."""
        self.registry.aliases.refuse(name)
        self.registry.find(name, number)
        async with self.operations.only(name, number):
            await self.changes.make(SettingDefault(self.registry, name, number))

    async def set_adapters(self, version: ModelVersion, adapters: dict[str, AdapterFiles]) -> None:
        """Load these from now on, beside those of the archive. The caller has the version for itself. Raises
        ServiceError."""
        await self.changes.make(LoadingAdapters(self.registry, version, adapters))

    async def divide_traffic(self, name: str, rule: TrafficRule | None) -> None:
        """Requests without a version go to versions by the rule; with None all to the default one again. Raises
        ModelNotFound, ModelVersionNotFound, Conflict."""
        self.registry.aliases.refuse(name)
        self.registry.check_traffic(name, rule)
        self.nodes.refuse(name)
        await self.changes.make(DividingTraffic(self.registry, name, rule))
        log.info("traffic of model %s: %s", name, "all to the default version" if rule is None else rule.weights)

    async def replace_aliases(self, name: str, aliases: Sequence[str]) -> None:
        """Requests find the model by these names, too. Raises ModelNotFound, Conflict, BadRequest."""
        self.registry.aliases.refuse(name)
        self.registry.find(name)
        self.nodes.refuse(name)
        await self.changes.make(ReplacingAliases(self.registry, name, aliases))
        log.info("aliases of model %s: %s", name, ", ".join(aliases) or "none")

    async def unregister(self, name: str, number: str | None) -> None:
        """Drains for up to `responseTimeout`, then fails the rest. Raises DefaultVersionInUse, Conflict for a node.

        Raises UnregisterTimedOut when that takes longer than `unregister_model_timeout`; it goes on then.
        """
        self.registry.aliases.refuse(name)
        name, number = self.registry.find(name, number).labels
        self.nodes.refuse(name)
        found = self.registry.find(name, number)
        self.registry.check_removable(found)
        if not found.environment.installed:  # a registration may wait for what nobody wants any more
            await self.changes.make(GivingUp(self.registry, found))
        async with self.operations.only(name, number):
            if found.status.state is not ModelState.GONE:  # else its registration was given up
                await self._remove(self.registry.find(name, number), given_up=found.forgotten)

    async def _remove(self, version: ModelVersion, *, given_up: bool) -> None:
        change = (Removing if given_up else Unregistering)(self.registry, version)
        await self.changes.make(change)
        closing = self._unregistration.close(version)
        await self.operations.closed(closing, version.source.name, version.config.response_timeout)

    def default_versions(self) -> list[tuple[str, str]]:
        """Names and versions that are defaults by the key `models`."""
        return [
            (name, number) for name, of in self._config.models.items() for number in of if of[number].default_version
        ]

    def refuse_new(self) -> None:
        """The server is ending: calls are refused, and calls that wait for workers end."""
        self.operations.refuse_new()

    async def hand_over(self, limit: float) -> None:
        """Wait until no call is under way, for `limit` seconds at most, and refuse those that come then: another server
        makes them."""
        over = time.monotonic() + limit
        while self.operations.busy and time.monotonic() < over:  # noqa: ASYNC110  # once, at the end
            await asyncio.sleep(LOOK_EVERY)
        self.operations.refuse_new()
        await self.changes.settled()
        for version in self.registry.all_versions():
            version.keep_workers()

    def busy(self) -> bool:
        """Requests are queued or running."""
        return any(version.queue.busy for version in self._unregistration.all_versions())

    def cancel_all(self, error: ServiceError) -> None:
        for version in self._unregistration.all_versions():
            version.queue.cancel_all(error)

    async def close(self, limit: float) -> None:
        """Close all versions at once, at the end of the server. Idle handlers have `limit` seconds to close. The state
        stays."""
        await self.operations.stop()
        await self.changes.settled()
        versions = self.registry.all_versions()
        await asyncio.gather(*(v.close(limit if v.workers.at_rest else min(limit, RUNNING_CALL)) for v in versions))


def _stored_workers(version: ModelVersion, wanted: Registration, stored: StoredVersion) -> Counts:
    """Stored workers of each part. A stage that the state does not know has one."""
    if not version.stages:
        return [(version, (stored.min_workers, stored.max_workers))]
    return [(stage, wanted.stage_workers.get(name, (1, 1))) for name, stage in version.stages.items()]
