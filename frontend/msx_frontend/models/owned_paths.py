"""Paths of the inference listener that models have by their `routes:`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from msx_core.generation import Capabilities
from msx_frontend.management_errors import Conflict
from msx_frontend.models.versions.model_version import ModelVersion
from msx_net.model_names import ModelNames

Versions = Callable[[], Iterable[ModelVersion]]


class HasPaths(Protocol):
    """The router of the listener."""

    def taken_by(self, path: str) -> tuple[str, ...] | None:
        """None for a path that models may have, () for one of the server, else the capabilities of models that answer
        it."""


class OwnedPaths:
    def __init__(self, versions: Versions, names: ModelNames) -> None:
        """`versions` are those that are registered."""
        self.owners: dict[str, str] = {}
        """Each path, and the name of its model."""
        self._versions, self._names = versions, names
        self._server: HasPaths | None = None

    def keep_free(self, server: HasPaths) -> None:
        """No model may have a path of the server itself."""
        self._server = server

    def check(self, version: ModelVersion) -> None:
        """Raises Conflict for a path of its routes that the server or another model has."""
        name = version.source.name
        for path in version.paths:
            what = f"Path {path} of model {name} (routes)"
            if self.owners.get(path) not in (None, name):
                raise Conflict(f"{what} is already that of model {self.owners[path]}.")
            if (taken := self._taken_by(path)) is None:
                continue
            if not taken:
                raise Conflict(f"{what} is one of the server's own.")
            for one in taken:
                if (other := self._offering(one)) is not None:
                    raise Conflict(
                        f"{what} is answered by model {other} ({one}), which is loaded: unregister it first."
                    )

    def loaded(self, name: str, offered: Capabilities) -> str:
        """A worker has loaded a model with these capabilities, on which the routes of some paths depend. Returns why it
        may not serve: another model has a path that it answers; "" if it may."""
        self._names.changed()
        for path, owner in self.owners.items():
            taken = next((one for one in self._taken_by(path) or () if getattr(offered, one)), None)
            if taken and owner != name:
                return (
                    f"Model {name} answers {path} ({taken}), which is a path of model {owner} (routes): unregister "
                    "that one, or give its route another path."
                )
        return ""

    def find(self) -> None:
        """Give models the paths of the versions that are registered from now on."""
        self.owners.clear()
        self.owners.update({path: version.source.name for version in self._versions() for path in version.paths})

    def _taken_by(self, path: str) -> tuple[str, ...] | None:
        return None if self._server is None else self._server.taken_by(path)

    def _offering(self, capability: str) -> str | None:
        """The first model that offers it."""
        loaded = ((one.source.name, one.schema.capabilities) for one in self._versions())
        return next((name for name, offered in loaded if offered and getattr(offered, capability)), None)
