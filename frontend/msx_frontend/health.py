"""Is the server alive, is it ready: one truth for every probe."""

from __future__ import annotations

from msx_frontend.models.model_version import ModelVersion
from msx_frontend.models.registry import Registry
from msx_frontend.models.states import ModelState


class Health:
    """`draining` is set by the life cycle when the end has begun, `started` when the models of the start are known."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self.started = False
        self.draining = False

    def ready(self) -> bool:
        """Every model answers, and the server is not ending. False while loading and after a failure."""
        if self.draining or not self.started:
            return False
        return all(version.serving for version in self._registry.all_versions())

    def not_ready_because(self) -> str:
        if self.draining:
            return "the server is shutting down"
        if not self.started:
            return "the server is starting"
        missing = sorted({_named(version) for version in self._registry.all_versions() if not version.serving})
        return f"not serving: {', '.join(missing)}" if missing else ""

    def ping(self) -> tuple[int, str]:
        """TorchServe's: unhealthy only when a default version has workers that will not come back."""
        defaults = [self._registry.find(name) for name in self._registry.names()]
        return (200, "Healthy") if all(version.healthy for version in defaults) else (500, "Unhealthy")


def _named(version: ModelVersion) -> str:
    waits = version.shortage if version.state is ModelState.WAITING else None
    return f"{version.source.name} (waits for {waits.resource})" if waits else version.source.name
