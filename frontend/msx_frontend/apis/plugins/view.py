"""Server as plugins see it."""

import asyncio
import threading
from collections.abc import Mapping

import msgspec

from msx_core.plugins import ModelView, WorkerView
from msx_frontend.config import ServerConfig
from msx_frontend.models.registry import Registry
from msx_frontend.models.versions.model_version import ModelVersion
from msx_frontend.snapshots.content import text_of

SECRET = {"keystore_pass"}


def config_view(config: ServerConfig) -> Mapping[str, str]:
    """Every setting that has a value."""
    fields = [field.name for field in msgspec.structs.fields(ServerConfig) if field.name not in SECRET]
    values = {name: getattr(config, name) for name in fields}
    return {name: text_of(value) for name, value in values.items() if value is not None}


class View:
    """Belongs to the loop, which alone may read the registry: calls from other threads are run there."""

    def __init__(self, config: ServerConfig, registry: Registry) -> None:
        self.config, self._registry = config_view(config), registry
        self._loop, self._thread = asyncio.get_running_loop(), threading.get_ident()

    def models(self) -> list[ModelView]:
        if threading.get_ident() == self._thread:
            return self._now()
        return asyncio.run_coroutine_threadsafe(self._look(), self._loop).result()

    async def _look(self) -> list[ModelView]:
        return self._now()

    def _now(self) -> list[ModelView]:
        return [self._model(version) for version in self._registry.all_versions()]

    def _model(self, version: ModelVersion) -> ModelView:
        name, number = version.labels
        return ModelView(
            name=name,
            version=number,
            url=version.source.archive.shown,
            is_default=self._registry.is_default(version),
            state=version.status.state.value,
            min_workers=version.workers.least,
            max_workers=version.workers.most,
            batch_size=version.config.batch_size,
            workers=[
                WorkerView(str(one.number), one.state.value, one.group.pid if one.group else None)
                for one in version.workers.all
            ],
        )
