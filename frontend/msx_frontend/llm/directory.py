"""Which model a request means."""

from __future__ import annotations

from msx_frontend.errors import ModelNotFound, NotOffered, ServiceUnavailable
from msx_frontend.llm.errors import WrongParameter
from msx_frontend.models.model_version import ModelVersion
from msx_frontend.models.registry import Registry
from msx_sdk.generation import EMBED, GENERATE

ALIASES = frozenset({"", "dummy", "tgi"})
"""What clients send that were not told a name: huggingface_hub sends dummy, TGI's users send tgi."""


class Directory:
    """Models by name; the only one that offers an operation also by no name, or by an alias."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def find(self, name: str | None, operation: str, version: str | None = None) -> ModelVersion:
        """Raises ModelNotFound, NotOffered, WrongParameter where a name is needed, ServiceUnavailable during a load."""
        if name is not None and (name in self._registry.names() or name not in ALIASES):
            found = self._registry.find(name, version)
            if found.capabilities is not None and not getattr(found.capabilities, operation):
                raise NotOffered(name, operation)
            return found
        offering = [one for one in self.defaults() if one.capabilities and getattr(one.capabilities, operation)]
        if len(offering) == 1:
            return offering[0]
        if offering and not name:
            names = ", ".join(one.source.name for one in offering)
            raise WrongParameter("model", f"needed, since there is more than one that can {operation} text: {names}")
        unknown = [] if offering else [one for one in self.defaults() if one.capabilities is None]
        if any(one.expecting_workers for one in unknown):
            raise ServiceUnavailable("The models are still loading; ask again when they are ready.")
        if refusal := next((one.refusal for one in unknown if one.refusal), ""):
            raise ServiceUnavailable(refusal)
        raise ModelNotFound(name or f"none that can {operation} text is loaded")

    def names(self) -> list[str]:
        return self._registry.names()

    def default(self, name: str) -> ModelVersion:
        """Raises ModelNotFound."""
        return self._registry.find(name)

    def defaults(self) -> list[ModelVersion]:
        """The default version of each model."""
        return [self._registry.find(name) for name in self._registry.names()]

    def language_models(self) -> list[ModelVersion]:
        """Those that generate or embed."""
        return [one for one in self.defaults() if one.capabilities and _speaks(one)]


def _speaks(version: ModelVersion) -> bool:
    return any(getattr(version.capabilities, operation) for operation in (GENERATE, EMBED))
