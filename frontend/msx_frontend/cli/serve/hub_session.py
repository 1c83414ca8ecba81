"""One run of `msx-serve hf://org/name`, or of another hub: fetched first, so that the user sees how far it is."""

from __future__ import annotations

import asyncio
import sys
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click
import platformdirs

from msx_frontend.cli.options import Options
from msx_frontend.cli.serve.session import Serving, Session

if TYPE_CHECKING:
    from msx_frontend.archives.model_store import ModelStore
    from msx_frontend.config import ServerConfig

LIVE, TELL = 0.2, 10.0
"""Seconds between two looks at how far it is: on a terminal, and elsewhere."""
CLEAR = "\r\x1b[K"


class HubSession(Session):
    """Session of a model from a hub, which stays in the user's cache."""

    def __init__(self, options: Options, serving: Serving, folder: Path) -> None:
        self._given = options
        super().__init__(serving, folder)

    def _name(self) -> str:
        from msx_frontend.archives.archive_url import ArchiveUrl
        from msx_frontend.archives.hub.hub_models import hub_url
        from msx_frontend.archives.suffixes import stem

        return stem(Path(hub_url(ArchiveUrl.parse(self._serving.url)).name))

    def _served(self) -> str:
        return self._said

    def _model(self) -> str:
        return f"{self.name}={self._serving.url}"

    def options(self, given: Options) -> Options:
        found = super().options(given)
        config = _config(found)
        if config.hub_dir is not None or config.cache_dir is not None:
            return found
        usual = platformdirs.user_cache_path("msx-serve") / "hub"  # the state ends with the session
        return replace(found, settings=(f"hub_dir={usual}", *found.settings))

    def make(self) -> None:
        """Fetches it. Raises StartError, ServiceError, OSError."""
        config = _config(self.options(self._given))
        path, url = asyncio.run(_fetched(self._serving.url, config))
        self._serving = replace(self._serving, path=path)
        self._said = url


def _config(options: Options) -> ServerConfig:
    from msx_frontend.config.load import load_server_config

    return load_server_config(options.overrides(), options.ts_config, options.env)[0]


async def _fetched(url: str, config: ServerConfig) -> tuple[Path, str]:
    """As the server would, by its rules; it finds what is there then."""
    from msx_frontend.archives.archive_url import ArchiveUrl
    from msx_frontend.archives.download import Downloads
    from msx_frontend.archives.hubs import Hubs
    from msx_frontend.archives.model_store import ModelStore
    from msx_frontend.archives.signed import key_ring
    from msx_frontend.config.state_folder import state_folder

    folder = state_folder(config)
    folder.make()
    ring = key_ring(config.require_signature, config.signature_keys)
    store = ModelStore(folder.model_store, folder, Downloads(config, folder.downloads), ring, Hubs(config, folder))
    async with AsyncExitStack() as until:
        telling = asyncio.create_task(_tell(store, url))
        try:
            found = await until.enter_async_context(store.obtained(ArchiveUrl.parse(url), name=url))
        finally:
            telling.cancel()
            if sys.stderr.isatty():
                click.echo(CLEAR, nl=False, err=True)
    return found.path, found.url


async def _tell(store: ModelStore, name: str) -> None:
    """Tell how far it is: on a terminal in one line, which is written anew."""
    live, told = sys.stderr.isatty(), ""
    while True:
        await asyncio.sleep(LIVE if live else TELL)
        if (fetch := store.fetches.find(name)) is not None and fetch.phase != told:
            told = fetch.phase
            click.echo(f"{CLEAR}{told}" if live else told, nl=not live, err=True)
