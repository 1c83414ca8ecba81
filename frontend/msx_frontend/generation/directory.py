"""Which model a request means."""

from __future__ import annotations

from typing import NamedTuple

from msx_core.generation import CLASSIFY, EMBED, GENERATE, TOKENIZE
from msx_core.service_errors import ModelNotFound, NotOffered, ServiceError, ServiceUnavailable
from msx_frontend.generation.errors import FirstLoading, UnknownAdapter, UnknownModel, WrongParameter
from msx_frontend.models.registry import Registry
from msx_frontend.models.traffic import Headers
from msx_frontend.models.versions.model_version import ModelVersion
from msx_net.keys import ClientKey

NAMELESS = frozenset({"", "dummy", "tgi"})
"""Names that clients send if they do not know the model: huggingface_hub sends dummy, TGI's users send tgi."""

LATEST = ":latest"
"""Ollama's lists show it behind every name, and its users send such names to OpenAI's routes, too."""


class AdaptedModel(NamedTuple):
    """`adapter` is empty for the model alone."""

    version: ModelVersion
    adapter: str
    name: str
    """The model's name for the reply: an alias as it was asked for."""


class Directory:
    """Models by name; the only one that offers an operation also by no name, or by one of NAMELESS.

    `default_llm` is what TGI's clients mean, who know of one model and cannot name any; empty for the first one.
    """

    def __init__(
        self, registry: Registry, default_llm: str = "", key: ClientKey | None = None, headers: Headers = ()
    ) -> None:
        """`headers` are those of the request, where one asks."""
        self._registry, self._default_llm, self._key = registry, default_llm, key
        self._headers = headers

    def seen_by(self, key: ClientKey | None) -> Directory:
        """A key for some models sees no others: neither in lists nor as the one that is meant without a name."""
        return self if key is None or key.models is None else Directory(self._registry, self._default_llm, key)

    def asked_by(self, key: ClientKey | None, headers: Headers) -> Directory:
        """The same for one request, which goes to a version of its model by the model's traffic."""
        return Directory(self._registry, self._default_llm, None if key is None or key.models is None else key, headers)

    def find(self, name: str | None, operation: str, version: str | None = None) -> ModelVersion:
        """Raises ModelNotFound, NotOffered, WrongParameter where a name is needed, ServiceUnavailable during a load."""
        found = self._found(name, operation, version)
        return found if version is not None else self._of_traffic(found, operation)

    def find_adapted(self, name: str | None, operation: str) -> AdaptedModel:
        """The same as `find` for `model:adapter`, and for the bare name of an adapter that one model has. Raises
        UnknownAdapter, too."""
        name = self.plain(name) if name else name
        base, colon, adapter = (name or "").partition(":")
        if not name or self._knows(name):
            return _adapted(self.find(name, operation), "", name)
        if colon and self._knows(base):
            return checked(self.find(base, operation), adapter, base)
        owners = [one for one in self._offering(operation) if name in one.schema.adapter_names]
        if len(owners) == 1:
            return checked(self._of_traffic(owners[0], operation), name)
        return _adapted(self.find(name, operation), "")

    def _knows(self, name: str) -> bool:
        """It is the name or an alias of a model."""
        return self._registry.has_model(name) or self._registry.aliases.name_of(name) is not None

    def plain(self, name: str) -> str:
        """The name without LATEST, if it means something then and nothing as it is."""
        base = name.removesuffix(LATEST)
        return base if base != name and self._means_one(base) and not self._means_one(name) else name

    def _means_one(self, name: str) -> bool:
        """It is a model's name or alias, or means an adapter of one: see `find_adapted`."""
        base, colon, adapter = name.partition(":")
        if self._knows(name):
            return True
        if colon:
            return self._knows(base) and adapter in self._registry.find(base).schema.adapter_names
        return any(name in one.schema.adapter_names for one in self.defaults())

    def _of_traffic(self, found: ModelVersion, operation: str) -> ModelVersion:
        """Another version than the default one, where the model's traffic is divided. Raises NotOffered."""
        chosen = self._registry.choose(found.source.name, self._headers)
        return chosen if chosen is found else self._offers(chosen, operation)

    def _found(self, name: str | None, operation: str, version: str | None) -> ModelVersion:
        if self._names_one(name):
            return self._named(name or "", operation, version)
        offering = self._offering(operation)
        if len(offering) == 1:
            return offering[0]
        if offering and not name:
            names = ", ".join(sorted(one.source.name for one in offering))
            raise WrongParameter("model", f"needed, since there is more than one that can {operation} text: {names}")
        raise self._unknown(name, operation) if offering else self._none(name, operation)

    def find_for_tgi(self, name: str | None, operation: str) -> ModelVersion:
        """The same as `find`, but a name is never needed."""
        return self._of_traffic(self._found_for_tgi(name, operation), operation)

    def find_for_tokens(self, name: str | None) -> ModelVersion:
        """The same for tokens, which every model of texts has: without a name those of one that generates, if there
        is one."""
        if self._names_one(name) or self._default_llm:
            return self.find_for_tgi(name, TOKENIZE)
        first = self._first(name, GENERATE if self.generates() else TOKENIZE)
        return self._of_traffic(self._offers(first, TOKENIZE), TOKENIZE)

    def find_for_tei(self, name: str | None, operation: str) -> ModelVersion:
        """The same for operations that language models do not have: `default_llm` is not meant."""
        named = self._names_one(name)
        found = self._named(name or "", operation) if named else self._first(name, operation)
        return self._of_traffic(found, operation)

    def _found_for_tgi(self, name: str | None, operation: str) -> ModelVersion:
        if self._names_one(name):
            return self._named(name or "", operation)
        if self._default_llm and self._allows(self._default_llm):
            return self._named(self._default_llm, operation, said_by=" (default_llm)")
        return self._first(name, operation)

    def _first(self, name: str | None, operation: str) -> ModelVersion:
        """The first that was registered of those that offer it."""
        for one in sorted(self.defaults(), key=lambda one: bool(one.source.workflow)):
            if one.schema.capabilities and getattr(one.schema.capabilities, operation):
                return one
            if _loads(one):
                raise _loading(one)  # it may be the one: to ask another model until then would be to ask the wrong one
        raise self._none(name, operation)

    def names(self) -> list[str]:
        return [name for name in self._registry.names() if self._allows(name)]

    def default(self, name: str) -> ModelVersion:
        """Raises ModelNotFound."""
        name = self.plain(name)
        if not self._knows(name):
            raise UnknownModel(name, "for text", [one.source.name for one in self.language_models()])
        return self._registry.find(name)

    def defaults(self) -> list[ModelVersion]:
        """The default version of each model, in the order in which they were registered."""
        return [self._registry.find(name) for name in self._registry.names_by_age() if self._allows(name)]

    def language_models(self) -> list[ModelVersion]:
        """The models that generate, embed or classify, by name."""
        speaking = [one for one in self.defaults() if operations_of(one)]
        return sorted(speaking, key=lambda one: one.source.name)

    def generates(self) -> bool:
        """Whether a model is known to generate."""
        return any(one.schema.capabilities is not None and one.schema.capabilities.generate for one in self.defaults())

    def may_generate(self) -> bool:
        """Whether a model generates, or one that has not been loaded yet may."""
        return any(one.schema.capabilities is None or one.schema.capabilities.generate for one in self.defaults())

    def _names_one(self, name: str | None) -> bool:
        return name is not None and (name not in NAMELESS or self._knows(name))

    def _named(self, name: str, operation: str, version: str | None = None, said_by: str = "") -> ModelVersion:
        name = self.plain(name)
        if self._key is not None:
            self._key.check_model(name)
        try:
            found = self._registry.find(name, version)
        except ModelNotFound:
            raise self._unknown(f"{name}{said_by}", operation) from None
        return self._offers(found, operation)

    def _offers(self, found: ModelVersion, operation: str) -> ModelVersion:
        if found.schema.capabilities is not None and not getattr(found.schema.capabilities, operation):
            raise NotOffered(found.source.name, operation)
        if _waits(found) and _loads(found):
            raise FirstLoading(found)
        return found

    def _allows(self, name: str) -> bool:
        return self._key is None or self._key.allows(name)

    def _offering(self, operation: str) -> list[ModelVersion]:
        return [
            one for one in self.defaults() if one.schema.capabilities and getattr(one.schema.capabilities, operation)
        ]

    def _none(self, name: str | None, operation: str) -> ServiceError:
        """The error when no model offers the operation now."""
        untold = [one for one in self.defaults() if one.schema.capabilities is None]
        if loading := [one for one in untold if _loads(one)]:
            return _loading(next(filter(_waits, loading), loading[0]))
        if refusal := next((one.workers.refusal for one in untold if one.workers.refusal), ""):
            return ServiceUnavailable(refusal)
        return self._unknown(name, operation)

    def _unknown(self, name: str | None, operation: str) -> ModelNotFound:
        offering = sorted(one.source.name for one in self._offering(operation))
        if not name:
            return ModelNotFound(f"none that can {operation} text is loaded")
        return UnknownModel(name, f"that can {operation} text", offering)


def _adapted(version: ModelVersion, adapter: str, asked: str | None = None) -> AdaptedModel:
    return AdaptedModel(version, adapter, version.called(asked))


def checked(version: ModelVersion, adapter: str, asked: str | None = None) -> AdaptedModel:
    """Raises UnknownAdapter."""
    if version.schema.capabilities is not None and adapter not in version.schema.adapter_names:
        raise UnknownAdapter(version.source.name, adapter, version.schema.adapter_names)
    return _adapted(version, adapter, asked)


def _loads(version: ModelVersion) -> bool:
    """Whether the model loads for the first time: what it offers is not known."""
    return version.schema.capabilities is None and version.workers.expected


def _waits(version: ModelVersion) -> bool:
    """Requests wait for its load: they start it, or it is taken over from a server before this one."""
    return version.workers.on_demand or version.workers.adopts


def _loading(version: ModelVersion) -> ServiceUnavailable:
    if _waits(version):
        return FirstLoading(version)
    return ServiceUnavailable("The models are still loading; ask again when they are ready.")


def operations_of(version: ModelVersion) -> list[str]:
    """Operations of a language model; empty for other models, and before the first load."""
    return [one for one in (GENERATE, EMBED, CLASSIFY) if getattr(version.schema.capabilities, one, False)]
