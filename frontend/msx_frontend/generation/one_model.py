"""The model that a path names, for requests whose bodies may name it once more."""

from __future__ import annotations

from msx_core.generation import GENERATE
from msx_core.model_families import WRITERS
from msx_core.service_errors import ServiceError
from msx_frontend.generation.directory import NAMELESS, AdaptedModel, Directory
from msx_frontend.generation.errors import UnknownModel
from msx_frontend.models.registry import Registry
from msx_frontend.models.traffic import Headers
from msx_frontend.models.versions.model_version import ModelVersion
from msx_net.keys import ClientKey


class OneModel(Directory):
    """A directory of one model, and of one version of it unless that is None."""

    def __init__(
        self,
        registry: Registry,
        model: str,
        version: str | None,
        key: ClientKey | None = None,
        headers: Headers = (),
    ) -> None:
        super().__init__(registry, key=key, headers=headers)
        self._model, self._version = model, version

    def asked_by(self, key: ClientKey | None, headers: Headers) -> OneModel:
        return OneModel(self._registry, self._model, self._version, key, headers)

    def find_adapted(self, name: str | None, operation: str) -> AdaptedModel:
        """`name`: none, one of the model's, or an adapter's; the reply says the same. Raises UnknownModel for another
        one, and what `find` raises."""
        version = self.find(self._model, operation, self._version)
        if name is None or name in NAMELESS:
            return AdaptedModel(version, "", version.called(self._model))
        names = (version.source.name, *version.aliases)
        if name in names:
            return AdaptedModel(version, "", name)
        base, colon, behind = name.partition(":")
        adapter = behind if colon and base in names else name
        if adapter in version.schema.adapter_names:
            return AdaptedModel(version, adapter, name)
        raise UnknownModel(name, "of this path", [*names, *version.schema.adapter_names])

    def generates(self) -> bool:
        """Whether the model makes texts, as its workers have said, or, until one has, its handler's name. Paths of
        other models mean what their handlers make of them."""
        try:
            version = self._registry.find(self._model, self._version)
        except ServiceError:
            return False
        return _writes(version)

    def only(self) -> ModelVersion:
        """Raises ServiceError."""
        return self.find(self._model, GENERATE, self._version)


def _writes(version: ModelVersion) -> bool:
    offered = version.schema.capabilities
    return offered.generate if offered is not None else version.source.handler in WRITERS
