"""Settings of a version that is served: its loaded adapters, and how deeply it sleeps."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

import msgspec

from msx_core.generation import AdapterFiles
from msx_core.service_errors import BadRequest
from msx_frontend.models.changes.change import Change
from msx_frontend.models.changes.records import current_record, with_options
from msx_frontend.models.changes.registering import check_kept
from msx_frontend.models.registry import Registry
from msx_frontend.models.state.state import State
from msx_frontend.models.versions.model_version import ModelVersion


class Setting(Change):
    """Is among the options of the registration, which a restarted server has again."""

    def __init__(self, registry: Registry, version: ModelVersion) -> None:
        self._registry, self._version = registry, version
        self._record = version.record

    @property
    @abstractmethod
    def _options(self) -> dict[str, Any]:
        """The options of `Registration` to save."""

    def check(self) -> None:
        check_kept(self._version)

    async def save(self, state: State) -> None:
        record = current_record(self._version, is_default=self._registry.is_default(self._version))
        self._record = with_options(record, **self._options)
        await state.save(self._record)

    def apply(self) -> None:
        self._version.record = self._record


class LoadingAdapters(Setting):
    """Loads these from now on, beside those of the archive."""

    def __init__(self, registry: Registry, version: ModelVersion, adapters: Mapping[str, AdapterFiles]) -> None:
        super().__init__(registry, version)
        self._adapters = dict(adapters)

    @property
    def _options(self) -> dict[str, Any]:
        return {"adapters": msgspec.to_builtins(self._adapters)}

    def check(self) -> None:
        super().check()
        if workflow := self._version.source.workflow:
            raise BadRequest(
                f"Model {self._version.source.name} is a node of workflow {workflow}, which keeps no adapters: pack "
                "them into its archive."
            )
        for name in self._adapters.keys() - self._version.schema.adapters.keys():
            self._registry.aliases.check_adapter(name)

    def apply(self) -> None:
        super().apply()
        self._version.schema.adapters = self._adapters


class ChangingSleep(Setting):
    """`level` 0 wakes it. The workers are told when it is saved. A node of a workflow is awake after a restart, since
    the workflow keeps the workers of its nodes alone."""

    def __init__(self, registry: Registry, version: ModelVersion, level: int) -> None:
        super().__init__(registry, version)
        self._level = level

    @property
    def _options(self) -> dict[str, Any]:
        return {"sleep_level": self._level and max(self._level, self._version.sleep.level)}

    def check(self) -> None:
        super().check()
        self._version.schema.check_sleeps()

    async def save(self, state: State) -> None:
        if not self._version.source.workflow:
            await super().save(state)
