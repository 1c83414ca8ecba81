"""One environment on disk, which is installed once for all versions that use it."""

import asyncio
import errno
import logging
import os
import secrets
import shutil
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path
from typing import NamedTuple

from msx_archiver.room import room
from msx_archiver.room import why as why_not_written
from msx_archiver.uses import Uses
from msx_core.module_command import module_command
from msx_frontend.environments.process import CommandFailed, run_command
from msx_frontend.environments.requirements import Requirements
from msx_frontend.management_errors import RequirementsFailed
from msx_frontend.worker_modules import RUN_MODULE

log = logging.getLogger("msx.models")

_COMPLETE = "complete"
_OPTIONS = ("--disable-pip-version-check", "--no-input", "--no-color", "--progress-bar=off")
_SHOWN_LINES = 4
_LOOK_AGAIN = 0.2
"""Seconds."""


class WorkerPython(NamedTuple):
    """The Python of a worker: an interpreter, and a folder of packages that precede the interpreter's own."""

    python: str
    site_dir: str | None = None

    def stands(self) -> bool:
        """Whether it is still on the disk. Blocks."""
        return os.path.exists(self.python) and (self.site_dir is None or os.path.isdir(self.site_dir))


class Build:
    """Installs into `root/<key>-<random>`, which is valid once it holds the file `complete`.

    Each attempt has a folder of its own, so that pip of a killed server cannot write into a later attempt.
    """

    def __init__(
        self,
        root: Path,
        key: str,
        requirements: Requirements,
        limit: float,
        env: Mapping[str, str],
        *,
        uses: Uses | None = None,
        ready: Path | None = None,
    ) -> None:
        """`uses`, `ready`: see Environments."""
        self._root = root
        self._roots = (root,) if ready is None else (root, ready)
        self._uses = uses
        self._requirements = requirements
        self._limit = limit
        self._env = env
        self.key = key
        self.users = 0
        self.phase = ""
        self._task: asyncio.Task[WorkerPython] | None = None

    async def place(self) -> WorkerPython:
        """Install the packages if necessary; a failed attempt is repeated. Raises RequirementsFailed."""
        if self._task is None or (self._task.done() and not _good(self._task)):
            self._task = asyncio.create_task(self._make())
            self._task.add_done_callback(
                lambda task: task.cancelled() or task.exception()
            )  # those who wait may be gone
        return await asyncio.shield(self._task)

    async def stop(self) -> None:
        """No version uses it any more: a running installation ends, and a complete one stays on the disk."""
        if self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _make(self) -> WorkerPython:
        folder = self._root / f"{self.key}-{secrets.token_hex(4)}"
        try:
            return await asyncio.wait_for(self._found_or_installed(folder), self._limit)
        except BaseException as error:
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
            raise _named(error, self._limit, self._root) from None

    async def _found_or_installed(self, folder: Path) -> WorkerPython:
        if (found := await asyncio.to_thread(self._complete)) is not None:
            return self._place_in(found)
        async with self._alone():
            if self._uses is not None and (found := await asyncio.to_thread(self._complete)) is not None:
                return self._place_in(found)
            await self._install(folder)
            return self._place_in(folder)

    @asynccontextmanager
    async def _alone(self) -> AsyncIterator[None]:
        """Hold the lock of a shared folder: one server installs, and the others wait."""
        if self._uses is None or not self._uses.exclusive:
            yield
            return
        while True:
            with self._uses.nobody(f"build {self.key}") as alone:
                if alone:
                    yield
                    return
            self.phase = "another server installs them"
            await asyncio.sleep(_LOOK_AGAIN)

    def _complete(self) -> Path | None:
        found = (path.parent for root in self._roots for path in root.glob(f"{self.key}-*/{_COMPLETE}"))
        return next((folder for folder in found if self._place_in(folder).stands()), None)

    async def _install(self, folder: Path) -> None:
        (folder / "tmp").mkdir(parents=True)
        if self._requirements.venv:
            await self._make_venv(folder)
        else:
            (folder / "site").mkdir()  # pip makes it only for something to put there
        target = () if self._requirements.venv else ("--target", str(folder / "site"))
        python = self._place_in(folder).python
        await self._run(folder, python, "pip", "install", *_OPTIONS, "-r", str(self._requirements.file), *target)
        await asyncio.to_thread(shutil.rmtree, folder / "tmp", ignore_errors=True)
        (folder / _COMPLETE).touch()

    async def _make_venv(self, folder: Path) -> None:
        """The virtual environment sees the interpreter's packages: those of the worker, pip, and installed
        requirements."""
        interpreter = self._requirements.interpreter
        self.phase = "making the virtual environment"
        venv = folder / "venv"
        await self._run(folder, interpreter.path, "venv", "--system-site-packages", "--without-pip", str(venv))
        (own,) = _sites(folder)
        lines = [f"import site; site.addsitedir({path!r})" for path in interpreter.site_dirs]
        (own / "msx_server.pth").write_text("\n".join(lines) + "\n")

    async def _run(self, folder: Path, python: str, *module: str) -> None:
        """Run a module of `python` with arguments. The process ends when the server ends."""
        command = [*module_command(python, RUN_MODULE), str(os.getpid()), *module]
        env = {**self._env, "TMPDIR": str(folder / "tmp"), "PYTHONUNBUFFERED": "1"}
        await run_command(command, self._requirements.model_dir, env, self._tell)

    def _tell(self, line: str) -> None:
        log.debug("pip: %s", line)
        self.phase = line.strip()[:120]

    def _place_in(self, folder: Path) -> WorkerPython:
        if self._requirements.venv:
            return WorkerPython(str(folder / "venv" / "bin" / "python"))
        return WorkerPython(python=self._requirements.interpreter.path, site_dir=str(folder / "site"))


def _good(task: asyncio.Task[WorkerPython]) -> bool:
    return not task.cancelled() and task.exception() is None and task.result().stands()


def _named(error: BaseException, limit: float, root: Path) -> BaseException:
    if isinstance(error, CommandFailed):
        told = [line for line in error.lines if line.startswith("ERROR:")] or error.lines
        why = " ".join(told[-_SHOWN_LINES:]) or f"pip exited with code {error.code}"
        left = f" (they go to {root}: {room(root)})" if os.strerror(errno.ENOSPC) in why else ""
        return RequirementsFailed(why + left, "\n".join(error.lines))
    if isinstance(error, asyncio.TimeoutError):
        return RequirementsFailed(f"it took longer than install_py_dep_timeout, {limit:g} s")
    if isinstance(error, OSError):
        return RequirementsFailed(f"{why_not_written(error, root)}: {error.filename or root}")
    return error


def remove(root: Path, is_waste: Callable[[Path], bool], uses: Uses | None = None) -> None:
    """Remove folders of `root`, without those that other servers use. Blocks."""
    for folder in filter(is_waste, root.iterdir() if root.is_dir() else ()):
        with nullcontext(True) if uses is None else uses.nobody(key_of(folder)) as unused:
            if unused:
                (folder / _COMPLETE).unlink(missing_ok=True)  # what is left of it must not be taken for whole
                shutil.rmtree(folder, ignore_errors=True)


def package_folders(root: Path) -> list[Path]:
    """Folders of packages of the complete environments. Blocks."""
    complete = sorted(mark.parent for mark in root.glob(f"*/{_COMPLETE}"))
    return [site for folder in complete for site in _sites(folder)]


def _sites(folder: Path) -> list[Path]:
    return [*folder.glob("site"), *(folder / "venv" / "lib").glob("python*/site-packages")]


def key_of(folder: Path) -> str:
    return folder.name.partition("-")[0]


def is_venv(python: Path) -> bool:
    """Whether it is the interpreter of an environment with useVenv."""
    return python.parent.parent.name == "venv" and (python.parent.parent.parent / _COMPLETE).exists()


def is_unfinished(folder: Path) -> bool:
    return not (folder / _COMPLETE).exists()
