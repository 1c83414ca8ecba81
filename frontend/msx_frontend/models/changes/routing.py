"""Which version answers the requests that name none, and by which names they ask for its model."""

from collections.abc import Sequence

from msx_frontend.models.changes.change import Change
from msx_frontend.models.changes.registering import check_kept
from msx_frontend.models.registry import Registry
from msx_frontend.models.state.state import State
from msx_frontend.models.traffic import TrafficRule


class SettingDefault(Change):
    """All traffic goes to the version: who names one for all wants no division any more."""

    def __init__(self, registry: Registry, name: str, number: str) -> None:
        self._registry, self._name, self._number = registry, name, number
        self._was: tuple[str, TrafficRule | None] = number, None

    def check(self) -> None:
        version = self._registry.find(self._name, self._number)
        self._was = self._registry.default_of(self._name), self._registry.traffic(self._name)
        if not self._is_so:
            check_kept(version)

    @property
    def _is_so(self) -> bool:
        return self._was == (self._number, None)

    async def save(self, state: State) -> None:
        if not self._is_so:
            await state.set_default(self._name, self._number, None)

    def apply(self) -> None:
        self._registry.set_default(self._name, self._number)
        self._registry.divide(self._name, None)

    def is_news(self) -> bool:
        return not self._is_so

    async def take_back(self, state: State) -> None:
        await state.set_default(self._name, *self._was)


class DividingTraffic(Change):
    """Requests go to versions by the rule; with None all go to the default one."""

    def __init__(self, registry: Registry, name: str, rule: TrafficRule | None) -> None:
        self._registry, self._name, self._rule = registry, name, rule
        self._was: TrafficRule | None = None

    def check(self) -> None:
        self._registry.check_traffic(self._name, self._rule)
        self._was = self._registry.traffic(self._name)
        for number in self._rule.weights if self._rule else ():
            check_kept(self._registry.find(self._name, number))

    async def save(self, state: State) -> None:
        await state.save_traffic(self._name, self._rule)

    def apply(self) -> None:
        self._registry.divide(self._name, self._rule)

    async def take_back(self, state: State) -> None:
        await state.save_traffic(self._name, self._was)


class ReplacingAliases(Change):
    """These are the aliases of the model, whatever its versions' model-config.yaml has."""

    def __init__(self, registry: Registry, name: str, aliases: Sequence[str]) -> None:
        self._registry, self._name, self._aliases = registry, name, aliases
        self._was: Sequence[str] | None = None

    def check(self) -> None:
        check_kept(self._registry.find(self._name))
        self._registry.aliases.check(self._name, self._aliases)
        self._was = self._registry.aliases.given(self._name)

    async def save(self, state: State) -> None:
        await state.save_aliases(self._name, self._aliases)

    def apply(self) -> None:
        self._registry.aliases.give(self._name, self._aliases)

    async def take_back(self, state: State) -> None:
        await state.save_aliases(self._name, self._was)
