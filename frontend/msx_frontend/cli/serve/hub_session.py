"""One run of `msx-serve hf://org/name`, or of another hub: fetched first, so that the user sees how far it is."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click
import platformdirs

from msx_frontend.cli.options import Options
from msx_frontend.cli.serve.session import Serving, Session

if TYPE_CHECKING:
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
        from msx_frontend.archives.fetched import fetched

        config = _config(self.options(self._given))
        every = LIVE if sys.stderr.isatty() else TELL
        try:
            path, self._said = asyncio.run(fetched(self._serving.url, config, _say, every))
        finally:
            if sys.stderr.isatty():
                click.echo(CLEAR, nl=False, err=True)
        self._serving = replace(self._serving, path=path)


def _config(options: Options) -> ServerConfig:
    from msx_frontend.config.load import load_server_config

    return load_server_config(options.overrides(), options.ts_config, options.env)[0]


def _say(text: str) -> None:
    """Tell how far it is: on a terminal in one line, which is written anew."""
    live = sys.stderr.isatty()
    click.echo(f"{CLEAR}{text}" if live else text, nl=not live, err=True)
