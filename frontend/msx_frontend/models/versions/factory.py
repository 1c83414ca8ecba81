"""Makes model versions of an archive and the options of a registration."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import msgspec

from msx_core.config import Pipeline
from msx_core.generation import AdapterFiles, Capabilities
from msx_frontend.archives.model_store import ModelStore
from msx_frontend.config import ServerConfig
from msx_frontend.environments.environments import Environments
from msx_frontend.metrics import ModelMetrics, ServerMetrics
from msx_frontend.models.autoscaling.timer import AutoscalingTimer
from msx_frontend.models.registration import Registration
from msx_frontend.models.versions.engine_choice import EngineChoice
from msx_frontend.models.versions.group_recipe import GroupRecipe
from msx_frontend.models.versions.model_source import ModelSource, make_source, stage_source
from msx_frontend.models.versions.model_version import ModelVersion
from msx_frontend.models.versions.plain_parts import PlainParts
from msx_frontend.models.versions.spawn import Spawner
from msx_frontend.models.versions.staged_parts import StagedParts
from msx_frontend.models.versions.supervisor import Refusal, VersionEvents, VersionResources
from msx_frontend.resources.supply import Supply


class VersionFactory:
    """Its versions are not registered yet, and have no workers."""

    def __init__(
        self,
        config: ServerConfig,
        store: ModelStore,
        supply: Supply,
        spawner: Spawner,
        metrics: ServerMetrics,
        environments: Environments,
        refusal: Refusal,
    ) -> None:
        self._config = config
        self._store = store
        self._supply = supply
        self._spawner = spawner
        self._metrics = metrics
        self._environments = environments
        self._refusal = refusal
        self._engines = EngineChoice(config, environments.interpreters)
        self._autoscaling = AutoscalingTimer()

    @asynccontextmanager
    async def built(self, path: Path, wanted: Registration) -> AsyncIterator[ModelVersion]:
        """A version of the archive at `path`, which is unpacked; the content is released if the block fails."""
        unpacked = await self._store.contents.unpack(path)
        try:
            yield await self.made(await asyncio.to_thread(make_source, path, unpacked, wanted, self._config))
        except BaseException:
            await asyncio.shield(self._store.contents.release(unpacked.digest))
            raise

    async def made(self, source: ModelSource) -> ModelVersion:
        """Raises InvalidModel where no engine can serve it, or its interpreter is none of the server's, or, unless this
        is the start, which its workers try again, cannot run workers now."""
        version = self._make(await self._engines.settle(source))
        if not source.at_startup:
            await version.environment.check()
        return version

    def _make(self, source: ModelSource) -> ModelVersion:
        recipe, pipeline = self._recipe(source), source.config.pipeline
        return _set(ModelVersion(self._plain(recipe) if pipeline is None else self._staged(recipe, pipeline)))

    def make_lost(self, source: ModelSource, reason: str, least: int, most: int) -> ModelVersion:
        """A version whose archive is missing: it is FAILED for `reason`."""
        version = _set(ModelVersion(parts := self._plain(self._recipe(source))))
        parts.supervisor.lose(reason, least, most)
        return version

    def _recipe(self, source: ModelSource) -> GroupRecipe:
        return GroupRecipe(
            source=source,
            environment=self._environments.of(source),
            contents=self._store.contents,
            spawner=self._spawner,
        )

    def _plain(self, recipe: GroupRecipe, events: VersionEvents | None = None) -> PlainParts:
        return PlainParts(recipe, self._resources(recipe.source), events)

    def _resources(self, source: ModelSource) -> VersionResources:
        supply = self._supply(f"{source.name}:{source.version}", source.config)
        metrics = ModelMetrics(self._metrics, source.name, source.version)
        refusal = _never if source.stage_of else self._refusal  # clients ask for no stage
        return VersionResources(supply, metrics, self._config.sequence_keys, self._autoscaling, refusal)

    def _staged(self, recipe: GroupRecipe, pipeline: Pipeline) -> StagedParts:
        """Its stages have its environment."""
        source = recipe.source

        def make_stage(name: str, events: VersionEvents) -> PlainParts:
            of_stage = stage_source(source, pipeline.stages[name], passes_on=pipeline.passes_on(name))
            return self._plain(replace(recipe, source=of_stage), events)

        given = self._resources(source)
        return StagedParts(recipe, given.supply, given.metrics, pipeline, make_stage)


def _never(name: str, offered: Capabilities) -> str:
    return ""


def _set(version: ModelVersion) -> ModelVersion:
    """Give the version the settings that its registration has kept."""
    options = version.source.options
    if (on := options.get("autoscaling")) is not None:
        version.workers.turn_autoscaling(on)
    version.sleep.level = options.get("sleep_level", 0)
    version.schema.adapters = msgspec.convert(options.get("adapters", {}), dict[str, AdapterFiles])
    return version
