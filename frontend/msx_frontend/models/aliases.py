"""Aliases of models: further names by which requests ask for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from msx_core.names import aliases_problem
from msx_core.service_errors import BadRequest, ModelNotFound
from msx_frontend.management_errors import Conflict
from msx_frontend.models.versions.model_version import ModelVersion
from msx_net.model_names import ModelNames


class AliasList(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of `PUT /models/{model_name}/aliases`."""

    aliases: list[str]


def alias_list(value: object) -> list[str]:
    """Parse a request's body. Raises BadRequest."""
    try:
        aliases = msgspec.convert(value, AliasList).aliases
    except msgspec.ValidationError as error:
        raise BadRequest(f'The body must be {{"aliases": ["a-name", "org/name"]}}: {error}.') from None
    if problem := aliases_problem(aliases):
        raise BadRequest(f"The list aliases {problem}.")
    return aliases


class Aliases:
    """A model has those that an operator gave it, else those of the model-config.yaml of its versions. In force
    are those that neither a model nor an older model's alias has."""

    def __init__(self, models: Callable[[], Mapping[str, Sequence[ModelVersion]]]) -> None:
        """`models`: the registered versions by the names of their models."""
        self.names = ModelNames()
        """Has those in force."""
        self._models = models
        self._given: dict[str, Sequence[str]] = {}

    def name_of(self, alias: str) -> str | None:
        """The name of the model that has the alias; None: no model has it."""
        return self.names.aliases.get(alias)

    def own_name(self, name: str) -> str:
        """The same, and of any other name the name itself."""
        return self.names.aliases.get(name, name)

    def refuse(self, name: str) -> None:
        """Raises ModelNotFound for an alias: what changes a model is not to meet another one, once the alias has
        moved."""
        if (owner := self.name_of(name)) is not None:
            raise ModelNotFound(f"{name}, which is an alias: a call that changes model {owner} names the model itself")

    def given(self, name: str) -> Sequence[str] | None:
        """The list that an operator gave the model; None: those of its versions count."""
        return self._given.get(name)

    def give(self, name: str, aliases: Sequence[str] | None) -> None:
        """The model has these from now on; None: those of its versions. It need not be registered yet."""
        self._given.pop(name, None)
        if aliases is not None:
            self._given[name] = aliases
        self.put_in_force()

    def put_in_force(self) -> None:
        """Look at all models anew: something of them has changed."""
        found: dict[str, str] = {}
        models = self._models()
        for name, versions in models.items():
            wanted = (alias for alias in self._wanted(name, versions) if alias not in models)
            own = tuple(alias for alias in wanted if found.setdefault(alias, name) == name)
            for version in versions:
                version.aliases = own
        self.names.aliases = found
        self.names.changed()

    def hidden(self) -> list[tuple[str, str]]:
        """Models, and those of their aliases that mean another model, which a start may find."""
        wanted = ((name, alias) for name, versions in self._models().items() for alias in self._wanted(name, versions))
        return [(name, alias) for name, alias in wanted if alias != name and self.name_of(alias) != name]

    def check_new(self, version: ModelVersion, old: ModelVersion | None) -> None:
        """Check a version that is to be registered, in the place of `old`. Raises Conflict, BadRequest."""
        name = version.source.name
        if (owner := self.name_of(name)) is not None:
            raise Conflict(f"Model {name} cannot be registered: {name} is an alias of model {owner}. {_remedy(owner)}")
        others = [one for one in self._models().get(name, ()) if one is not old]
        self.check(name, self._wanted(name, [*others, version]))

    def check(self, name: str, aliases: Sequence[str]) -> None:
        """Raises Conflict for an alias by which requests ask for something else, BadRequest for too many."""
        if problem := aliases_problem(aliases):
            raise BadRequest(f"The list aliases of model {name} {problem}.")
        models = self._models()
        adapters = _adapters(models)
        for alias in aliases:
            if alias in models and alias != name:
                raise Conflict(f"Alias {alias} of model {name} is the name of another model: choose another alias.")
            if (owner := self.name_of(alias) or name) != name:
                raise Conflict(f"Alias {alias} of model {name} is an alias of model {owner}. {_remedy(owner)}")
            if alias in adapters:
                raise Conflict(
                    f"Alias {alias} of model {name} is an adapter of model {adapters[alias]}: choose another alias."
                )

    def check_adapter(self, adapter: str) -> None:
        """Raises Conflict for the name of an adapter that is an alias."""
        if (owner := self.name_of(adapter)) is not None:
            raise Conflict(
                f"lora_name: {adapter} is an alias of model {owner}, which requests mean: choose another name."
            )

    def _wanted(self, name: str, versions: Iterable[ModelVersion]) -> Sequence[str]:
        """Nodes of workflows are asked for by their workflow alone."""
        if (given := self._given.get(name)) is not None:
            return given
        return list(dict.fromkeys(a for one in versions if not one.source.workflow for a in one.config.aliases))


def _adapters(models: Mapping[str, Sequence[ModelVersion]]) -> dict[str, str]:
    """Models by the names of their adapters."""
    return {one: name for name, versions in models.items() for each in versions for one in each.schema.adapter_names}


def _remedy(owner: str) -> str:
    return f"Take it from there first: PUT /models/{owner}/aliases replaces the list."
