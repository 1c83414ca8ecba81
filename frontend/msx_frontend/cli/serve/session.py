"""One run of `msx-serve PATH`: a server in the foreground with this one model, and a state folder that ends with it."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from msx_archiver.errors import ArchiveError
from msx_core.service_errors import ServiceError
from msx_core.start_errors import StartError
from msx_core.values import show
from msx_frontend.archives.guess import name_of
from msx_frontend.archives.model_folder import made_folder
from msx_frontend.cli.options import Options
from msx_frontend.cli.serve.banner import banner
from msx_frontend.cli.serve.file_watch import FileWatch
from msx_frontend.config.load import configuration_file, load_settings
from msx_frontend.config.server_config import ServerConfigError
from msx_frontend.visible import visible
from msx_net.listening.address import Address

if TYPE_CHECKING:
    from msx_frontend.assembly.server import Server
    from msx_frontend.models.versions.model_version import ModelVersion

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 8080


@dataclass(frozen=True)
class Serving:
    """The flags that only a path has. `workers`, `host`, `port`: None for what its configuration and the server's say.

    With `url`, of a hub's model, `path` is where this was fetched to.
    """

    path: Path
    url: str = ""
    host: str | None = None
    port: int | None = None
    weights: Path | None = None
    workers: int | None = None
    reload: bool = False
    wait: bool = False


class Session:
    """`folder`: for the model's folders, one a load, and the state of the server."""

    def __init__(self, serving: Serving, folder: Path) -> None:
        self._serving = serving
        self._folder = folder
        self._store = folder / "models"
        self._store.mkdir()
        self._number = 0
        self._said = ""
        self.name = self._name()
        self.code = 0

    def _name(self) -> str:
        return name_of(self._serving.path)

    def make(self) -> None:
        """A folder of what the path is now. Raises StartError, ArchiveError, OSError."""
        self._number += 1
        self._said = made_folder(self._serving.path, self._made, self._serving.weights)

    @property
    def _made(self) -> Path:
        return self._store / f"{self.name}-{self._number}"

    def _model(self) -> str:
        """Value of `--models`."""
        return f"{self.name}={self._made}"

    def options(self, given: Options) -> Options:
        """Options beside the flags that the user has given: --set beats what is chosen here, and so do addresses of the
        configuration's file without --host and --port. Raises ServerConfigError."""
        file = configuration_file(given.ts_config, given.env)
        if file is not None and file.is_fifo():
            raise ServerConfigError(f"{file}: is a pipe, which can be read once, but is read again: write it to a file")
        own = replace(given, model_store=self._store)
        chosen = self._addresses()
        if self._serving.host is None and self._serving.port is None:
            of_user = load_settings(own.overrides(), given.ts_config, given.env).given
            chosen = {name: value for name, value in chosen.items() if name not in of_user}
        chosen["default_workers_per_model"] = "1"
        return replace(
            own,
            models=(self._model(),),
            state_dir=given.state_dir or self._folder / "state",
            settings=(*(f"{name}={value}" for name, value in chosen.items()), *given.settings),
            ncs=True,
            wait=False,
            foreground=True,
        )

    def _addresses(self) -> dict[str, str]:
        """Three ports in a row, or free ones; gRPC has free ones. Raises ServerConfigError."""
        host = DEFAULT_HOST if self._serving.host is None else _host(self._serving.host)
        port = DEFAULT_PORT if self._serving.port is None else self._serving.port
        names = ("inference_address", "management_address", "metrics_address")
        found = {name: str(Address("http", host, port + more if port else 0)) for more, name in enumerate(names)}
        return found | {"grpc_inference_port": "0", "grpc_management_port": "0"}

    async def run(self, server: Server) -> None:
        """Run beside the server, until it ends."""
        if server.info.not_loaded:
            self._tell_failure(server.info.not_loaded, [])
        else:
            await self._begin(server)
        if self._serving.reload:
            await self._reload(server)

    async def _begin(self, server: Server) -> None:
        """Tell where it answers, and whether it is ready."""
        if not self._serving.wait:
            self._show(server)
        await self._scale(server)
        failures = await server.why_not_ready(float("inf"))
        if failures:
            self._tell_failure(failures, server.models.context.registry.versions_of(self.name))
        elif self._serving.wait:
            self._show(server)
        else:
            click.echo(f"{self.name} is ready.")

    def _show(self, server: Server) -> None:
        click.echo(banner(server.info, self.name, self._serving.path, self._served()))

    def _served(self) -> str:
        return f"{self._serving.path} ({self._said})"

    async def _scale(self, server: Server) -> None:
        if (workers := self._serving.workers) is not None:
            await server.models.management.scale(self.name, None, workers, workers, wait=False)

    def _tell_failure(self, failures: list[str], versions: Iterable[ModelVersion]) -> None:
        click.echo(visible("\n".join(failures)), err=True)
        for version in versions:
            _tell_traceback(version)
        if not self._serving.reload:
            self.code = 1
            os.kill(os.getpid(), signal.SIGTERM)

    async def _reload(self, server: Server) -> None:
        watch = FileWatch(self._made)
        while True:
            old = self._made
            await watch.changed(old, self._serving.path)
            if await self._swap(server):
                await asyncio.to_thread(shutil.rmtree, old, ignore_errors=True)
            watch = FileWatch(self._made)

    async def _swap(self, server: Server) -> bool:
        """The old one serves until the new one does, and goes on when the new one cannot be loaded."""
        from msx_frontend.models.registration import Registration

        click.echo(f"{self._serving.path} has changed: {self.name} is loaded again.")
        try:
            await asyncio.to_thread(self.make)
            wanted = Registration(url=str(self._made), initial_workers=self._serving.workers or 1, replace=True)
            await server.models.management.register(wanted)
        except (StartError, ArchiveError, OSError, ServiceError) as error:
            click.echo(f"{visible(str(error))}\nThe old {self.name} goes on.", err=True)
            return False
        click.echo(f"{self.name} is ready.")
        return True


def _host(given: str) -> str:
    """Raises ServerConfigError for the value of --host that has more than a host."""
    host = given[1:-1] if given.startswith("[") and given.endswith("]") else given
    if not _is_host(host):
        raise ServerConfigError(
            f"--host: {show(given)} is not the name or IP address of a host; --port says the port, and "
            "--set inference_address=unix:/path a Unix socket"
        )
    return host


def _is_host(text: str) -> bool:
    try:
        return Address.parse(str(Address("http", text))) == Address("http", text.lower())
    except ValueError:
        return False


def _tell_traceback(version: ModelVersion) -> None:
    if version.status.last_end is not None and version.status.last_end.traceback:
        click.echo(visible(version.status.last_end.traceback), err=True)
