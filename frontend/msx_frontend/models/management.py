"""The operations on models: register, scale, unregister. REST, gRPC and the start of the server call these."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import msgspec

from msx_frontend.archives.archive_url import ArchiveUrl
from msx_frontend.archives.model_store import ModelStore
from msx_frontend.config import ServerConfig
from msx_frontend.environments.environments import Environments
from msx_frontend.errors import BadRequest, ServiceError
from msx_frontend.management_errors import Conflict, InvalidModel, WorkersNotStarted
from msx_frontend.metrics import ServerMetrics
from msx_frontend.models.model_source import ModelSource
from msx_frontend.models.model_version import ModelVersion
from msx_frontend.models.operations import Operations, check_all_start, check_workers, start_parts, start_workers
from msx_frontend.models.registration import Registration
from msx_frontend.models.registry import Registry
from msx_frontend.models.spawn import Spawner
from msx_frontend.models.state import State
from msx_frontend.models.state_store import StoredVersion
from msx_frontend.models.states import ModelState
from msx_frontend.models.traffic import TrafficRule
from msx_frontend.models.unregistration import Unregistration
from msx_frontend.models.version_factory import VersionFactory
from msx_frontend.models.worker_counts import worker_counts
from msx_frontend.models.workflow_nodes import WorkflowNodes
from msx_frontend.resources.supply import Supply
from msx_sdk._internal.config import ModelConfig
from msx_sdk.generation import AdapterFiles

log = logging.getLogger("msx.management")

TRAFFIC = "traffic"
"""Stands for the division of a model's traffic where one call at a time may change something."""

RUNNING_CALL = 0.5
"""Seconds in which a call without a client has to end when the server stops."""


class Management:
    """Every change is written to the state before it is answered. One call per model version at a time."""

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
    ) -> None:
        environments = environments or Environments(Path(), config, {})
        self._config = config
        self.registry = registry
        self.store = store
        self._state = state
        self.operations = Operations(config.unregister_model_timeout)
        self._unregistration = Unregistration(registry, store, environments)
        store.used_by(lambda: [version.source.archive for version in self._unregistration.all_versions()])
        self._factory = VersionFactory(config, store, supply, spawner, metrics, environments)
        self.nodes = WorkflowNodes(registry, self.operations, self._unregistration, self._factory)

    # -- register --

    async def register(self, wanted: Registration) -> ModelVersion:
        """Register a version and start its workers; waits for them when `synchronous`.

        Raises ServiceError; the version and its files are removed then.
        """
        url = ArchiveUrl.parse(wanted.url)
        name = wanted.model_name or ""
        async with self.store.obtained(url, signed=wanted.s3_sse_kms, replace=wanted.replace, name=name) as found:
            return await self.register_from(found.path, msgspec.structs.replace(wanted, url=found.url))

    async def register_from(self, path: Path, wanted: Registration) -> ModelVersion:
        async with self._factory.built(path, wanted) as version:
            self._replaced(version, wanted)  # a conflict is told before another call is waited for
            async with self.operations.only(*version.labels):
                await self._install(version, wanted)
        return version

    async def restore(self, path: Path, wanted: Registration, stored: StoredVersion) -> None:
        """Register a version of the state again, with the workers that it had; the state is not written. Raises
        ServiceError."""
        async with self._factory.built(path, wanted) as version:
            if version.labels != (stored.name, stored.version):
                raise InvalidModel(f"{path} holds {' '.join(version.labels)} now; register it anew.")
            self.registry.add(version)
            try:
                await start_parts(_stored_workers(version, wanted, stored))
            except BaseException:
                await self._unregistration.take_back(version)
                raise

    async def adopt(self, path: Path, wanted: Registration, stored: StoredVersion) -> None:
        """Register a version of a snapshot, and write it to the state."""
        await self.restore(path, wanted, stored)
        version = self.registry.find(stored.name, stored.version)
        await self._state.save(version, self.registry.is_default(version))

    async def adopt_lost(self, wanted: Registration, stored: StoredVersion, reason: str) -> None:
        """Register a version of a snapshot whose archive is missing as FAILED, and write it to the state."""
        version = self.keep_lost(wanted, stored, reason)
        await self._state.save(version, self.registry.is_default(version))

    def keep_lost(self, wanted: Registration, stored: StoredVersion, reason: str) -> ModelVersion:
        """Register a version whose archive is missing: it is FAILED for `reason` until it is registered again or
        unregistered."""
        config = ModelConfig().with_overrides(**wanted.overrides())
        source = ModelSource(
            stored.name, stored.version, stored.url, "", Path(), "", {}, config, wanted.to_dict(), True
        )
        version = self._factory.make(source)
        version.lose(reason, stored.min_workers, stored.max_workers)
        self.registry.add(version)
        return version

    async def _install(self, version: ModelVersion, wanted: Registration) -> None:
        old = self._replaced(version, wanted)
        if old is None:
            self.registry.add(version)
        else:
            self.registry.check_paths(version)
        try:
            await self._first_workers(version, wanted)
            await self._state.save(version, self.registry.is_default(version))
        except BaseException:
            await self._unregistration.take_back(version)
            raise
        if old is not None:
            self.registry.replace(old, version)
            self.operations.in_background(self._unregistration.close(old))

    def _replaced(self, version: ModelVersion, wanted: Registration) -> ModelVersion | None:
        name, number = version.labels
        self.nodes.refuse(name)
        if not self.registry.has(name, number):
            return None
        if not wanted.replace and not self.registry.find(name, number).lost:
            raise Conflict(f"Model version {number} is already registered for model {name}")
        return self.registry.find(name, number)

    async def _first_workers(self, version: ModelVersion, wanted: Registration) -> None:
        await start_parts([(part, worker_counts(part, wanted, self._config)) for part in version.parts])
        if wanted.synchronous or wanted.replace:
            await self._wait_for_first_workers(version)
        if wanted.replace:  # what is missing may be what the old one holds
            check_all_start(version)

    async def _wait_for_first_workers(self, version: ModelVersion) -> None:
        try:
            await self.operations.workers_settled(version)
        except WorkersNotStarted:
            if version.environment.failure is not None:
                raise version.environment.failure from None
            raise

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
        """Of all stages, where the model has some and `stage` names none. `autoscaling` switches it on or off, of all
        stages; None leaves it as it is.

        Raises BadRequest for max < min or an unknown stage, WorkersNotStarted when the new workers fail or could never
        start.
        """
        if max_workers < min_workers:
            raise BadRequest("max_worker cannot be less than min_worker.")
        version = self.registry.find(name, number)
        check_workers(version.part(stage), min_workers)
        if autoscaling is not None and stage is not None:
            raise BadRequest("autoscaling is switched for all stages of a model at once: leave out stage.")
        if autoscaling is not None and version.source.workflow:
            raise BadRequest(
                f"Model {name} is a node of workflow {version.source.workflow}: write autoscaling into the "
                "model-config.yaml of its archive."
            )
        work = self._scale(*version.labels, min_workers, max_workers, stage, autoscaling)
        if wait:
            await self.operations.workers_settled(await work)
        else:
            self.operations.in_background(work)

    async def _scale(
        self, name: str, number: str, min_workers: int, max_workers: int, stage: str | None, autoscaling: bool | None
    ) -> ModelVersion:
        async with self.operations.only(name, number):
            version = self.registry.find(name, number)
            part = version.part(stage)
            if autoscaling is not None:
                version.turn_autoscaling(autoscaling)
            await start_workers(part, min_workers, max_workers)
            await self._state.set_workers(version, autoscaling)
        return part

    async def change_sleep(self, name: str, number: str | None, level: int) -> ModelVersion:
        """0 wakes it. The state does not keep it. Raises ServiceError; BadRequest for what cannot sleep."""
        version = self.registry.find(name, number)
        async with self.operations.only(*version.labels):
            await (version.fall_asleep(level) if level else version.wake_up())
        return version

    async def set_default(self, name: str, number: str) -> None:
        self.registry.find(name, number)
        async with self.operations.only(name, number):
            if not self.registry.is_default(self.registry.find(name, number)):
                await self._state.set_default(name, number)
                self.registry.set_default(name, number)
        if self.registry.traffic(name) is not None:  # who names one version for all wants all to go there
            await self.divide_traffic(name, None)

    async def set_adapters(self, version: ModelVersion, adapters: dict[str, AdapterFiles]) -> None:
        """From now on these are loaded, beside those of the archive. The caller has the version for itself. Raises
        NotSaved."""
        await self._state.set_adapters(version, adapters)
        version.adapters = adapters

    async def divide_traffic(self, name: str, rule: TrafficRule | None) -> None:
        """Requests without a version go to versions by the rule; with None all to the default one again. Raises
        ModelNotFound, ModelVersionNotFound, Conflict for a workflow's node."""
        self.registry.check_traffic(name, rule)
        self.nodes.refuse(name)
        async with self.operations.only(name, TRAFFIC):
            self.registry.check_traffic(name, rule)
            await self._state.save_traffic(name, rule)
            self.registry.divide(name, rule)
        log.info("traffic of model %s: %s", name, "all to the default version" if rule is None else rule.weights)

    async def unregister(self, name: str, number: str | None) -> None:
        """Drains for up to `responseTimeout`, then fails the rest. Raises DefaultVersionInUse, Conflict for a node.

        Raises UnregisterTimedOut when that takes longer than `unregister_model_timeout`; it goes on then.
        """
        name, number = self.registry.find(name, number).labels
        self.nodes.refuse(name)
        installing = self.registry.find(name, number)
        self.registry.check_removable(installing)
        installing.environment.give_up()
        async with self.operations.only(name, number):
            if installing.state is ModelState.GONE:  # its registration was given up
                return
            version = self.registry.find(name, number)
            self.registry.check_removable(version)
            await self._state.remove(version)
            self.registry.remove(version)
            await self._leave_traffic(name, number)
            await self.operations.closed(self._unregistration.close(version), name, version.config.response_timeout)

    async def _leave_traffic(self, name: str, number: str) -> None:
        """The version is not there any more: neither is it in the division of the model's traffic."""
        if not self.registry.has_model(name):
            await self._state.save_traffic(name, None)
        elif (rule := self.registry.traffic(name)) is not None and number in rule.weights:
            await self.divide_traffic(name, rule.without(number))

    def default_versions(self) -> list[tuple[str, str]]:
        """Names and versions that are defaults by the key `models`."""
        return [
            (name, number) for name, of in self._config.models.items() for number in of if of[number].default_version
        ]

    def refuse_new(self) -> None:
        """The server is ending: calls are refused, and calls that wait for workers end."""
        self.operations.refuse_new()

    def busy(self) -> bool:
        """Requests are queued or running."""
        return any(version.busy for version in self._unregistration.all_versions())

    def cancel_all(self, error: ServiceError) -> None:
        for version in self._unregistration.all_versions():
            version.cancel_all(error)

    async def close(self, limit: float) -> None:
        """Close all versions at once, at the end of the server. Idle handlers have `limit` seconds to close. The state
        stays."""
        await self.operations.stop()
        versions = self.registry.all_versions()
        await asyncio.gather(*(v.close(limit if v.at_rest else min(limit, RUNNING_CALL)) for v in versions))


def _stored_workers(
    version: ModelVersion, wanted: Registration, stored: StoredVersion
) -> list[tuple[ModelVersion, tuple[int, int]]]:
    """Those that each part had. A stage that the state does not know has one."""
    if not version.stages:
        return [(version, (stored.min_workers, stored.max_workers))]
    return [(stage, wanted.stage_workers.get(name, (1, 1))) for name, stage in version.stages.items()]
