"""The Python environments of model versions."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from msx_archiver.uses import Uses
from msx_core.config import ConfigError, ModelConfig
from msx_core.config.vllm_section import check_names
from msx_frontend.config import ServerConfig
from msx_frontend.environments.build import Build, WorkerPython, is_unfinished, key_of, remove
from msx_frontend.environments.interpreter import Interpreter
from msx_frontend.environments.interpreters import InterpreterChoice, Interpreters
from msx_frontend.environments.requirements import Requirements
from msx_frontend.management_errors import InvalidModel, RequirementsFailed

log = logging.getLogger("msx.models")


class RequiringModel(Protocol):
    """A model version: the folder of its unpacked archive, and its requirements."""

    @property
    def name(self) -> str: ...

    @property
    def digest(self) -> str: ...

    @property
    def model_dir(self) -> Path: ...

    @property
    def manifest(self) -> dict[str, Any]: ...

    @property
    def config(self) -> ModelConfig: ...


class Environment:
    """The environment of a version without requirements: the interpreter alone. `vllm` is the section of its
    model-config.yaml, whose names the interpreter's vLLM has to know."""

    def __init__(self, model: str, interpreter: InterpreterChoice, vllm: Any = None) -> None:
        self._model, self._vllm = model, vllm
        self.interpreter = interpreter
        self.place = WorkerPython(interpreter.path)
        self.failure: RequirementsFailed | None = None
        """Why the last attempt to install failed."""

    @property
    def phase(self) -> str:
        """The current step of the installation; "" when none runs."""
        return ""

    @property
    def installed(self) -> bool:
        """All that it requires is there."""
        return True

    async def check(self) -> Interpreter:
        """Check that its interpreter can run workers, and has the arguments of `vllm:`, unless that is known. Raises
        InvalidModel."""
        found = await self.interpreter.check(self._model)
        if found.vllm_arguments:
            try:
                check_names(self._vllm, found.vllm_arguments)
            except ConfigError as error:
                raise InvalidModel(f"{self._model}: {error}") from None
        return found

    async def ready(self) -> None:
        """Wait until workers can be started with `place`. Raises InvalidModel, RequirementsFailed."""
        await self.check()

    def give_up(self) -> None:
        """The version is being unregistered: calls that wait in `ready` end."""

    async def close(self) -> None:
        """The version has no workers any more. Installed packages stay."""

    async def key(self) -> str:
        """The key of its folder; "" without requirements."""
        return ""


class RequiredEnvironment(Environment):
    """The environment of a version whose archive has requirements."""

    def __init__(
        self,
        model: str,
        interpreter: InterpreterChoice,
        environments: Environments,
        requirements: Callable[[Interpreter], Requirements],
        vllm: Any = None,
    ) -> None:
        super().__init__(model, interpreter, vllm)
        self._environments = environments
        self._requirements = requirements
        self._build: Build | None = None
        self._is_ready = False
        self._acquiring = asyncio.Lock()
        self._given_up = asyncio.Event()
        self._key = ""

    @property
    def phase(self) -> str:
        if self._is_ready or self._build is None:
            return ""
        return f"installing requirements: {self._build.phase}".removesuffix(": ")

    @property
    def installed(self) -> bool:
        return self._is_ready

    async def ready(self) -> None:
        await self.check()
        try:
            await self._ready()
        except RequirementsFailed as error:
            self.failure = error.of(self._model)
            raise self.failure from None

    async def _ready(self) -> None:
        if self._is_ready and await asyncio.to_thread(self.place.stands):
            return
        if self._is_ready:
            log.warning(
                "%s: its installed requirements were removed from the disk, and are installed again", self._model
            )
        self._is_ready = False
        async with self._acquiring:
            build = self._build = self._build or await self._acquired()
        place, given_up = asyncio.ensure_future(build.place()), asyncio.ensure_future(self._given_up.wait())
        try:
            await asyncio.wait({place, given_up}, return_when=asyncio.FIRST_COMPLETED)
            if self._given_up.is_set():
                raise RequirementsFailed("the model was unregistered meanwhile")
            self.place, self._is_ready, self.failure = place.result(), True, None
        finally:
            place.cancel()
            given_up.cancel()

    async def _acquired(self) -> Build:
        requirements = self._requirements(await self.check())
        if key := await self.key():
            return await self._environments.acquire(key, requirements)
        raise RequirementsFailed(f"{requirements.file.name} cannot be read")

    def give_up(self) -> None:
        if not self._is_ready:
            self._given_up.set()

    async def close(self) -> None:
        self._given_up.set()
        build, self._build = self._build, None
        if build is not None:
            await self._environments.release(build)

    async def key(self) -> str:
        with contextlib.suppress(OSError, InvalidModel):
            self._key = self._key or await asyncio.to_thread(self._requirements(await self.check()).key)
        return self._key


class Environments:
    """Environments in `folder`, by key: the same requirements on the same interpreter are installed once."""

    def __init__(
        self,
        folder: Path,
        config: ServerConfig,
        env: Mapping[str, str],
        interpreters: Interpreters | None = None,
        *,
        uses: Uses | None = None,
        ready: Path | None = None,
    ) -> None:
        """Share the folder with other servers where there is `uses`: each holds what it has, and nothing is removed
        that another one holds. `ready` is a folder with further environments, which is only read."""
        self._folder = folder
        self._uses = uses
        self._ready = ready
        self._config = config
        self._env = env
        self.interpreters = interpreters or Interpreters(config, env)
        self._builds: dict[str, Build] = {}
        self._removing = asyncio.Lock()

    def of(self, source: RequiringModel) -> Environment:
        """The environment for workers of `source`; nothing is checked or installed yet. Raises InvalidModel for an
        interpreter that the server does not have."""
        interpreter, vllm = self.interpreters.of(source.name, source.config.python), source.config.vllm
        name = source.manifest.get("model", {}).get("requirementsFile")
        if not name:
            return Environment(source.name, interpreter, vllm)
        if not self._config.install_py_dep_per_model:
            log.warning("%s: %s is not installed: install_py_dep_per_model is false", source.name, name)
            return Environment(source.name, interpreter, vllm)
        file, venv = source.model_dir / name, source.config.use_venv
        requirements = partial(Requirements, file, source.model_dir, source.digest, venv)
        return RequiredEnvironment(source.name, interpreter, self, requirements, vllm)

    async def acquire(self, key: str, requirements: Requirements) -> Build:
        limit = float(self._config.install_py_dep_timeout)
        async with self._removing:  # what is being removed must not be found
            if self._uses is not None:
                await asyncio.to_thread(self._uses.hold, key)
            if key not in self._builds:
                self._builds[key] = Build(
                    self._folder, key, requirements, limit, self._env, uses=self._uses, ready=self._ready
                )
            build = self._builds[key]
            build.users += 1
        return build

    async def release(self, build: Build) -> None:
        build.users -= 1
        if build.users == 0:
            self._builds.pop(build.key, None)
            await build.stop()
            if self._uses is not None and build.key not in self._builds:
                self._uses.release(build.key)

    async def forget(self, environment: Environment) -> None:
        """The version was unregistered: remove its packages, unless another version uses them."""
        key = await environment.key()
        async with self._removing:
            if key and key not in self._builds:
                await self._remove(lambda folder: key_of(folder) == key)

    async def recover(self) -> None:
        """Remove unfinished folders of a killed server, at the start."""
        await self._remove(is_unfinished)

    async def clean(self, used: Iterable[Environment]) -> None:
        """Once the models of the start are known: remove the environments that none of them uses, unless it is not
        known which one of them does: its interpreter may be away for a while."""
        keys = {await environment.key() for environment in used if isinstance(environment, RequiredEnvironment)}
        if "" not in keys:
            await self._remove(lambda folder: key_of(folder) not in keys)

    async def _remove(self, is_waste: Callable[[Path], bool]) -> None:
        await asyncio.to_thread(remove, self._folder, is_waste, self._uses)
