"""Whether the server is alive and ready: all probes read this."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Protocol

from msx_frontend.models.registry import Registry
from msx_frontend.models.versions.model_version import ModelVersion
from msx_frontend.models.versions.states import ModelState


class KnowsReadiness(Protocol):
    def ready(self) -> bool:
        """Whether every model answers and the server is not ending."""


class Health:
    """`draining` is set by the life cycle when the end has begun, `started` when the models of the start are known."""

    def __init__(
        self,
        registry: Registry,
        *,
        strict: bool = False,
        unhealthy_devices: Callable[[], Mapping[int, str]] = dict,
        cluster_problem: Callable[[], str] = str,
    ) -> None:
        """`strict`: ready means that every model serves, at any time (`readyz_strict`).

        `unhealthy_devices` returns the health of each unhealthy device, by the server's number; `cluster_problem` why
        nothing can be placed in the cluster, "" while it can, or without one. Neither changes the server's readiness:
        groups that run go on serving.
        """
        self._registry = registry
        self._strict = strict
        self._unhealthy_devices, self._cluster_problem = unhealthy_devices, cluster_problem
        self.started = False
        self.draining = False
        self._awaited: frozenset[tuple[str, str]] = frozenset()
        """Names and versions of the start, until each of them has had a ready worker; then empty."""
        self._restored: frozenset[tuple[str, str]] = frozenset()
        """Names and versions of restored models, of which one is enough (`ready_when=any`)."""
        self._absent: Callable[[], Iterable[str]] = tuple

    def begin(
        self, absent: Callable[[], Iterable[str]] = tuple, one_of: Collection[tuple[str, str]] = frozenset()
    ) -> None:
        """The models of the start are registered now. `absent` returns the names of those that are still missing; of
        the versions `one_of` one is enough."""
        present = frozenset(version.labels for version in self._registry.all_versions())
        self._restored = present.intersection(one_of)
        self._awaited = present - self._restored
        self._absent = absent
        self.started = True

    def ready(self) -> bool:
        """Whether new requests should be sent here; for the rule see `not_ready_because`."""
        return not self.not_ready_because()

    def detail(self) -> str:
        """Text of `/readyz`: whether it is ready, if not, why, and which devices are unhealthy."""
        why = self.not_ready_because()
        listed = ", ".join(f"{device} ({word})" for device, word in sorted(self._unhealthy_devices().items()))
        ready = f"Not ready: {why}" if why else "Ready"
        problem = self._cluster_problem().rstrip(".")
        further = [listed and f"unhealthy devices: {listed}", problem and f"cluster: {problem}"]
        return "; ".join(filter(None, [ready, *further]))

    def not_ready_because(self) -> str:
        """ "" when ready.

        At the start every model must have had a ready worker, so that a rollout stops at a server with one that does
        not work; or, with `ready_when=any`, every new one, and one of those that were restored. Later one model that
        serves is enough: a server is not taken out of service for another's trouble.
        """
        if self.draining:
            return "the server is shutting down"
        if not self.started:
            return "the server is starting"
        missing = sorted({*self._not_begun(), *map(_named, self._not_serving())})
        return f"not serving: {', '.join(missing)}" if missing else ""

    def _not_begun(self) -> list[str]:
        if not self._awaited and not self._restored and self._absent is tuple:
            return []
        waiting = [*filter(_has_not_served, self._registered(self._awaited)), *self._none_of_restored()]
        missing = [*map(_named, waiting), *self._absent()]
        if not missing:
            self._awaited, self._restored, self._absent = frozenset(), frozenset(), tuple
        return missing

    def _none_of_restored(self) -> list[ModelVersion]:
        """All of them, until one has served."""
        restored = [*self._registered(self._restored)]
        return restored if all(map(_has_not_served, restored)) else []

    def _registered(self, labels: Iterable[tuple[str, str]]) -> Iterator[ModelVersion]:
        """Find the versions, without those that were unregistered meanwhile; a version that was registered again
        replaces the failed one."""
        return (self._registry.find(*each) for each in labels if self._registry.has(*each))

    def _not_serving(self) -> list[ModelVersion]:
        """Strict: all versions that do not serve. Else all versions with wanted workers, if none of them serves."""
        versions = self._registry.all_versions()
        if self._strict:
            return [version for version in versions if not version.serving]
        wanting = [version for version in versions if version.workers.wanted]
        return [] if any(map(_has_worker, wanting)) else wanting

    def ping(self) -> tuple[int, str]:
        """TorchServe's: unhealthy only when a default version has workers that will not come back."""
        defaults = [self._registry.find(name) for name in self._registry.names()]
        return (200, "Healthy") if all(version.healthy for version in defaults) else (500, "Unhealthy")


def _has_not_served(version: ModelVersion) -> bool:
    if version.status.state is ModelState.FAILED and not version.workers.wanted:
        return True  # its archive is lost
    return version.workers.wanted and not version.status.served


def _has_worker(version: ModelVersion) -> bool:
    return version.serving and version.workers.answer


def _named(version: ModelVersion) -> str:
    name = version.source.name
    if version.status.state is ModelState.FAILED:
        return f"{name} (failed)"
    waits = version.status.shortage if version.status.state is ModelState.WAITING else None
    return f"{name} (waits for {waits.resource})" if waits else name
