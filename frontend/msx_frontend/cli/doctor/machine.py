"""Machine that the checks look at."""

import asyncio
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from msx_frontend.assembly.info import InstanceInfo
from msx_frontend.config.pythons import named_interpreters
from msx_frontend.config.server_config import ServerConfig
from msx_frontend.config.state_folder import state_folder
from msx_frontend.environments.build import package_folders
from msx_frontend.environments.interpreter import (
    Confine,
    Interpreter,
    PythonError,
    UnfitInterpreter,
    check_interpreter,
    find_interpreter,
)
from msx_frontend.models.versions.worker_rights import WorkerRights


@dataclass(frozen=True)
class Machine:
    config: ServerConfig = field(default_factory=ServerConfig)
    env: Mapping[str, str] = field(default_factory=lambda: os.environ)
    running: tuple[InstanceInfo, ...] = ()
    killed: tuple[InstanceInfo, ...] = ()

    def package(self, name: str) -> str | None:
        """Its version; None where it is not installed. Imports nothing of it."""
        try:
            return version(name)
        except PackageNotFoundError:
            return None

    def worker_packages(self) -> list[Path]:
        """Folders that workers import packages from: those of their interpreters, and of models' environments. An
        interpreter that cannot run workers has none, which another check reports."""
        folder = state_folder(self.config)
        roots = [root for root in (folder.environments, folder.ready_environments) if root is not None]
        try:
            own = find_interpreter(self.config.python, self.env).site_dirs
        except PythonError:
            own = ()
        named = [one.site_dirs for one in self.interpreters.values() if isinstance(one, Interpreter)]
        sites = dict.fromkeys([*own, *(site for sites in named for site in sites)])
        return [*map(Path, sites), *(path for root in roots for path in package_folders(root))]

    @cached_property
    def interpreters(self) -> Mapping[str, Interpreter | UnfitInterpreter]:
        """Interpreters of the key `pythons` by name, or why one cannot run workers."""
        return {name: self._checked(path) for name, path in named_interpreters(self.config).items()}

    @property
    def confine(self) -> Confine:
        """Makes a command one that has the rights of workers."""
        return WorkerRights(self.config, state_folder(self.config), lambda digest: False).of_any().command

    def _checked(self, path: Path) -> Interpreter | UnfitInterpreter:
        try:
            return asyncio.run(check_interpreter(path, self.env, self.confine))
        except UnfitInterpreter as error:
            return error
