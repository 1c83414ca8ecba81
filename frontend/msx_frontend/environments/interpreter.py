"""An interpreter of workers, and the short process that checks whether it can run them."""

import asyncio
import json
import site
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from msx_core import interpreter_probe as probe
from msx_core.start_errors import StartError
from msx_frontend import __version__
from msx_frontend.environments.process import CommandFailed, TooMuchOutput, run_command
from msx_frontend.versions import FRAMEWORKS, OWN_PACKAGE, PYTHON
from msx_frontend.worker_modules import PROTOCOL, WORKER
from msx_protocol import PROTOCOL_VERSION

LIMIT = 60.0
"""Seconds."""
MOST_OUTPUT = 1 << 16
"""Bytes."""

Confine = Callable[[Sequence[str]], list[str]]
"""Makes a command one that has the rights of workers."""


class UnfitInterpreter(Exception):
    """It cannot run workers. The message is the end of a sentence that begins with the interpreter."""


class PythonError(StartError):
    """The interpreter of the key `python` cannot run workers."""


class Interpreter(msgspec.Struct, frozen=True):
    """`version` is all of `sys.version`; `site_dirs` are its site-packages; `packages` are the versions of MSX and of
    frameworks there, by their metadata."""

    path: str
    version: str
    site_dirs: tuple[str, ...]
    packages: Mapping[str, str] = {}
    protocol: int = PROTOCOL_VERSION
    """Number of its workers' protocol."""
    file: str = ""
    """A file of MSX there."""
    problem: str = ""
    """Why it cannot import a worker."""
    vllm_arguments: tuple[str, ...] = ()
    """Names of the arguments of its vLLM's engine; empty where it has none."""

    @property
    def python(self) -> str:
        """Its version in numbers."""
        return self.version.split()[0]

    def __str__(self) -> str:
        """Its versions and its path, in words."""
        return ", ".join([f"Python {self.python}", *(f"{name} {v}" for name, v in self.packages.items()), self.path])

    def describe(self) -> dict[str, Any]:
        return {"path": self.path, "python": self.python, "packages": dict(self.packages)}


@cache
def own() -> Interpreter:
    packages = probe.installed(FRAMEWORKS)
    names = tuple(probe.vllm_arguments())
    return Interpreter(sys.executable, sys.version, tuple(site.getsitepackages()), packages, vllm_arguments=names)


async def check_interpreter(path: Path, env: Mapping[str, str], confine: Confine = list) -> Interpreter:
    """Start it, to read what it has. Takes as long as a start of Python, at most LIMIT. Raises UnfitInterpreter."""
    found = await _told(path.absolute(), env, confine)
    install = f"run `{found.path} -m pip install {OWN_PACKAGE}=={__version__}`"
    if not PYTHON.has(found.python):
        raise UnfitInterpreter(f"is Python {found.python}, and {OWN_PACKAGE} needs {PYTHON}")
    if not found.file:
        raise UnfitInterpreter(f"cannot run workers: {OWN_PACKAGE} is not installed there; {install}")
    if found.protocol != PROTOCOL_VERSION:
        raise UnfitInterpreter(
            f"has {OWN_PACKAGE} {found.packages.get(OWN_PACKAGE, 'of an unknown version')} with version "
            f"{found.protocol} of the workers' protocol, and this server is {__version__} with version "
            f"{PROTOCOL_VERSION}; {install}"
        )
    if found.problem:
        raise UnfitInterpreter(f"cannot run workers: it cannot import them ({found.problem}); {install}")
    return found


def find_interpreter(path: Path | None, env: Mapping[str, str]) -> Interpreter:
    """The interpreter of the key `python`, where no loop runs. Raises PythonError."""
    return own() if path is None else asyncio.run(default_interpreter(path, env))


async def default_interpreter(path: Path | None, env: Mapping[str, str]) -> Interpreter:
    """The interpreter of the key `python`; without it the server's own. Raises PythonError."""
    if path is None:
        return own()
    try:
        return await check_interpreter(path, env)
    except UnfitInterpreter as error:
        raise PythonError(f"python: {path} {error}") from None


async def _told(path: Path, env: Mapping[str, str], confine: Confine) -> Interpreter:
    program = Path(probe.__file__).read_text()
    command = confine([str(path), "-c", program, WORKER, PROTOCOL, OWN_PACKAGE, *FRAMEWORKS])
    lines: list[str] = []
    try:
        run = run_command(command, Path("/"), env, lines.append, most=MOST_OUTPUT)
        await asyncio.wait_for(run, LIMIT)
    except asyncio.TimeoutError:
        raise UnfitInterpreter(f"did not end within {LIMIT:g} s when it was checked") from None
    except TooMuchOutput:
        raise UnfitInterpreter(f"wrote more than {MOST_OUTPUT >> 10} KiB when it was checked") from None
    except OSError as error:
        raise UnfitInterpreter(f"cannot be run: {error.strerror}") from None
    except CommandFailed as error:
        why = (error.lines or [f"exit code {error.code}"])[-1]
        raise UnfitInterpreter(f"ended with an error when it was checked: {why}") from None
    return _read(str(path), lines)


def _read(path: str, lines: Sequence[str]) -> Interpreter:
    told = next((line for line in reversed(lines) if line.startswith(probe.MARK)), None)
    if told is None:
        raise UnfitInterpreter(f"is not Python: it wrote {' '.join(lines)[:80]!r} when it was checked")
    try:
        return msgspec.convert({"path": path, **json.loads(told.removeprefix(probe.MARK))}, Interpreter)
    except (ValueError, TypeError) as error:
        raise UnfitInterpreter(f"is not Python: what it wrote when it was checked cannot be read ({error})") from None
