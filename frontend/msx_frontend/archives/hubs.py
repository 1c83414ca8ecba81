"""The models of hubs, for a model store: what fetches them is loaded when the first is wanted."""

from __future__ import annotations

import asyncio
import importlib
import os
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from msx_frontend.config import ServerConfig
from msx_frontend.config.state_folder import StateFolder

if TYPE_CHECKING:
    from msx_frontend.archives.archive_url import ArchiveUrl
    from msx_frontend.archives.hub.hub_models import HubModels

_MODULE = "msx_frontend.archives.hub.hub_models"


class Hubs:
    def __init__(self, config: ServerConfig, folder: StateFolder, env: Mapping[str, str] = os.environ) -> None:
        self._config, self._folders, self._env = config, folder.hub_folders, env
        self._root = folder.hub if config.hub_dir is None else config.hub_dir.resolve()
        self.users: list[Callable[[], Iterable[ArchiveUrl]]] = []
        """Each returns the URLs of models or workflows that are served, or being unregistered."""

    async def load(self) -> HubModels:
        await asyncio.to_thread(importlib.import_module, _MODULE)
        return self._models

    @cached_property
    def _models(self) -> HubModels:
        from msx_frontend.archives.hub.hub_models import HubModels

        return HubModels(self._config, self._root, self._folders, self.users, self._env)

    @property
    def _is_loaded(self) -> bool:
        return "_models" in self.__dict__

    def made(self, path: Path) -> bool:
        """Whether this is the folder of a model of a hub, which was fetched by the rules of this server."""
        return self._is_loaded and self._models.made(path)

    async def settle(self, url: ArchiveUrl) -> None:
        """See `HubModels.settle`."""
        if self._is_loaded:
            await self._models.settle(url)

    async def clean(self) -> None:
        """Remove what an earlier server has left, at the start, if it had any."""
        if self._is_loaded or self._folders.is_dir():
            models = await self.load()
            await models.settle()
            await asyncio.to_thread(models.clean_folders)
