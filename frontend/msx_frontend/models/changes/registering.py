"""Versions come and go: registered, taken back, forgotten, unregistered."""

import time
from collections.abc import Callable

import msgspec

from msx_frontend.management_errors import Conflict
from msx_frontend.models.changes.change import Change
from msx_frontend.models.changes.records import Counts, current_record, new_record
from msx_frontend.models.registry import Registry
from msx_frontend.models.state.state import State
from msx_frontend.models.state.store import StoredVersion
from msx_frontend.models.versions.model_version import ModelVersion
from msx_frontend.models.versions.states import ModelState


class Registering(Change):
    """`version` is served, beside others or in the place of one of its number."""

    def __init__(
        self,
        registry: Registry,
        version: ModelVersion,
        counts: Counts,
        replaced: Callable[[], ModelVersion | None],
        close: Callable[[ModelVersion], object],
        *,
        answered: bool,
    ) -> None:
        """`replaced` finds the version whose place it takes, or raises Conflict; `close` begins to close that one.
        `answered`: the next start has it; else only once it is confirmed."""
        self._registry, self._version, self._counts = registry, version, counts
        self._replaced, self._close, self._answered = replaced, close, answered
        self._old: ModelVersion | None = None
        self._record: StoredVersion | None = None

    def check(self) -> None:
        self._old = self._replaced()
        check_reached(self._registry, self._version, self._old)

    async def save(self, state: State) -> None:
        is_default = self._registry.becomes_default(self._version)
        self._record = new_record(self._version, self._counts, is_default=is_default, answered=self._answered)
        await state.save(self._record)

    def apply(self) -> None:
        if self._old is None:
            self._registry.add(self._version)
        else:
            self._registry.replace(self._old, self._version)
            self._close(self._old)
        self._version.record = self._record

    def is_news(self) -> bool:
        return self._answered

    async def take_back(self, state: State) -> None:
        if self._old is not None and self._old.record is not None:
            await state.save(self._old.record)
        else:
            await state.remove(*self._version.labels, self._registry.rule_without(self._version))


class Confirming(Change):
    """The workers of a registration are ready, so that it is answered, and the next start has it."""

    def __init__(self, registry: Registry, version: ModelVersion) -> None:
        self._registry, self._version = registry, version
        self._record = version.record

    async def save(self, state: State) -> None:
        record = current_record(self._version, is_default=self._registry.is_default(self._version))
        self._record = msgspec.structs.replace(record, created_at=time.time())
        await state.save(self._record)

    def apply(self) -> None:
        self._version.record = self._record


class AddingNode(Change):
    """A node of a workflow is served. The workflow is saved already, with the workers of all of its nodes."""

    def __init__(self, registry: Registry, version: ModelVersion) -> None:
        self._registry, self._version = registry, version

    def check(self) -> None:
        if self._registry.has_model(name := self._version.source.name):
            raise Conflict(f"Model {name} is already registered")
        check_reached(self._registry, self._version)

    async def save(self, state: State) -> None:
        """Nothing."""

    def apply(self) -> None:
        self._registry.add(self._version)

    def is_news(self) -> bool:
        return False


class Removing(Change):
    """The version is not served any more, and the next start does not know it. Its traffic goes to the others."""

    def __init__(self, registry: Registry, version: ModelVersion) -> None:
        self._registry, self._version = registry, version

    async def save(self, state: State) -> None:
        if self._version.record is not None:
            await state.remove(*self._version.labels, self._registry.rule_without(self._version))

    def apply(self) -> None:
        self._registry.remove(self._version)
        self._version.record = None
        if not self._registry.has_model(name := self._version.source.name):
            self._registry.aliases.give(name, None)


class Unregistering(Removing):
    def check(self) -> None:
        self._registry.check_removable(self._version)


class TakingBack(Removing):
    """A registration has failed: nothing of it stays."""

    at_end = True

    def is_news(self) -> bool:
        return False


class GivingUp(Removing):
    """A version is not installed any more: the next start does not know it, and its registration ends by itself."""

    def check(self) -> None:
        self._registry.check_removable(self._version)

    def apply(self) -> None:
        self._version.record = None
        self._version.environment.give_up()


class Forgetting(Removing):
    """A registration has failed after its answer: the next start does not know the version, and describe goes on to say
    why."""

    def __init__(self, registry: Registry, version: ModelVersion) -> None:
        super().__init__(registry, version)
        self.wanted = True

    def check(self) -> None:
        version = self._version
        failed = version.status.state is ModelState.FAILED and not version.status.served
        self.wanted = failed and self._registry.holds(version)

    async def save(self, state: State) -> None:
        if self.wanted:
            await super().save(state)

    def apply(self) -> None:
        if self.wanted:
            self._registry.divide(self._version.source.name, self._registry.rule_without(self._version))
            self._version.record = None

    def is_news(self) -> bool:
        return self.wanted


def check_reached(registry: Registry, version: ModelVersion, old: ModelVersion | None = None) -> None:
    """Check that requests can reach it, in the place of `old`, by its name, aliases and paths. Raises ServiceError."""
    registry.aliases.check_new(version, old)
    registry.paths.check(version)


def check_kept(version: ModelVersion) -> None:
    """Raises Conflict for a version whose registration was taken back: what is said of it could not be remembered."""
    if version.forgotten:
        name, number = version.labels
        raise Conflict(
            f"Model {name} {number} was given up before it served, and its registration was taken back: scale it, or "
            "register it again."
        )
