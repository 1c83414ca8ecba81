"""The interpreters that workers may run on: that of the key `python`, and those of `pythons` by name."""

import asyncio
import contextlib
import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol

from msx_frontend.config import ServerConfig
from msx_frontend.config.pythons import named_interpreters
from msx_frontend.environments.interpreter import Confine, Interpreter, UnfitInterpreter, check_interpreter, own
from msx_frontend.management_errors import InvalidModel

Stamp = tuple[tuple[int, ...], ...]


class InterpreterChoice(Protocol):
    """The interpreter of some models."""

    @property
    def path(self) -> str: ...

    def describe(self) -> dict[str, Any]:
        """Members that describe shows: empty for the server's own, and until it has been checked."""

    async def check(self, model: str) -> Interpreter:
        """Its versions now. Raises InvalidModel, which names the model, where it cannot run workers."""


class OwnInterpreter:
    """The server's own, which is known without a check."""

    path = sys.executable

    def describe(self) -> dict[str, Any]:
        return {}

    async def check(self, model: str) -> Interpreter:
        return own()


class CheckedInterpreter:
    """One that the configuration names. It is checked again once it, or what is installed there, has changed."""

    def __init__(
        self, path: Path, env: Mapping[str, str], confine: Confine, *, name: str = "", found: Interpreter | None = None
    ) -> None:
        self.path = str(path)
        self._name, self._env, self._confine = name, env, confine
        self._found, self._stamp = found, found and _stamp(found)
        self._checking = asyncio.Lock()

    def describe(self) -> dict[str, Any]:
        named = {"name": self._name} if self._name else {}
        return {**named, **self._found.describe()} if self._found is not None else {}

    async def check(self, model: str) -> Interpreter:
        try:
            async with self._checking:
                return await self._checked()
        except UnfitInterpreter as error:
            self._found = None
            named = f"{self._name} ({self.path})" if self._name else self.path
            raise InvalidModel(f"{model}: python: {named} {error}") from None

    async def _checked(self) -> Interpreter:
        if self._found is None or self._stamp != await asyncio.to_thread(_stamp, self._found):
            self._found = await check_interpreter(Path(self.path), self._env, self._confine)
            self._stamp = await asyncio.to_thread(_stamp, self._found)
        return self._found


class Interpreters:
    def __init__(
        self,
        config: ServerConfig,
        env: Mapping[str, str],
        default: Interpreter | None = None,
        confine: Confine = list,
    ) -> None:
        """`default`: that of the key `python`, as it was found. Raises ServerConfigError."""
        self._default: InterpreterChoice = OwnInterpreter()
        if config.python is not None:
            self._default = CheckedInterpreter(config.python.absolute(), env, confine, found=default)
        named = named_interpreters(config)
        self._named = {name: CheckedInterpreter(path, env, confine, name=name) for name, path in named.items()}

    @property
    def names(self) -> Iterable[str]:
        """Names of `pythons`, in their order."""
        return self._named.keys()

    def of(self, model: str, name: str | None) -> InterpreterChoice:
        """The one that a model names, else that of all. Raises InvalidModel."""
        if name is None:
            return self._default
        if (found := self._named.get(name)) is None:
            known = f"which has {', '.join(self._named)}" if self._named else "which is not set"
            raise InvalidModel(
                f"{model}: python: {name} is not an interpreter of this server's key pythons, {known}: add "
                f"{name}=/path/to/bin/python there, and start the server again"
            )
        return found


def _stamp(found: Interpreter) -> Stamp:
    """Times and sizes of the interpreter, of its folders of packages, which change with each package that is installed,
    and of a file of MSX. Blocks for as long as the disk takes."""
    return tuple(_stamp_of(path) for path in (found.path, *found.site_dirs, found.file))


def _stamp_of(path: str) -> tuple[int, ...]:
    with contextlib.suppress(OSError):
        status = os.stat(path)
        return status.st_mtime_ns, status.st_ino, status.st_size
    return ()
