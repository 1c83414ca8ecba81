"""Makes model versions of an archive and the options of a registration."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import msgspec

from msx_core.generation import AdapterFiles
from msx_frontend.archives.model_store import ModelStore
from msx_frontend.config import ServerConfig
from msx_frontend.environments.environments import Environments
from msx_frontend.metrics import ModelMetrics, ServerMetrics
from msx_frontend.models.autoscaling.timer import AutoscalingTimer
from msx_frontend.models.group_recipe import GroupRecipe
from msx_frontend.models.model_source import ModelSource, make_source, stage_source
from msx_frontend.models.model_version import ModelVersion
from msx_frontend.models.registration import Registration
from msx_frontend.models.spawn import Spawner
from msx_frontend.models.staged_version import StagedVersion
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
    ) -> None:
        self._config = config
        self._store = store
        self._supply = supply
        self._spawner = spawner
        self._metrics = metrics
        self._environments = environments
        self._autoscaling = AutoscalingTimer()

    @asynccontextmanager
    async def built(self, path: Path, wanted: Registration) -> AsyncIterator[ModelVersion]:
        """A version of the archive at `path`, which is unpacked; the content is released if the block fails."""
        unpacked = await self._store.contents.unpack(path)
        try:
            yield self.make(await asyncio.to_thread(make_source, path, unpacked, wanted, self._config))
        except BaseException:
            await asyncio.shield(self._store.contents.release(unpacked.digest))
            raise

    def make(self, source: ModelSource) -> ModelVersion:
        version = self._version(source)
        if (on := source.options.get("autoscaling")) is not None:
            version.turn_autoscaling(on)
        version.sleep.level = source.options.get("sleep_level", 0)
        version.adapters = msgspec.convert(source.options.get("adapters", {}), dict[str, AdapterFiles])
        return version

    def _version(self, source: ModelSource) -> ModelVersion:
        metrics = ModelMetrics(self._metrics, source.name, source.version)
        resources = self._supply(f"{source.name}:{source.version}", source.config)
        recipe = GroupRecipe(
            source=source,
            environment=self._environments.of(source),
            contents=self._store.contents,
            spawner=self._spawner,
        )
        keys, pipeline = self._config.sequence_keys, source.config.pipeline
        if pipeline is None:
            return ModelVersion(recipe, resources, metrics, keys, self._autoscaling)
        stages = {
            name: self._stage(stage_source(source, stage, passes_on=pipeline.passes_on(name)), recipe)
            for name, stage in pipeline.stages.items()
        }
        return StagedVersion(recipe, resources, metrics, keys, pipeline, stages)

    def _stage(self, source: ModelSource, whole: GroupRecipe) -> ModelVersion:
        """It has the environment of the whole model."""
        metrics = ModelMetrics(self._metrics, source.name, source.version)
        resources = self._supply(f"{source.name}:{source.version}", source.config)
        return ModelVersion(
            replace(whole, source=source), resources, metrics, self._config.sequence_keys, self._autoscaling
        )
