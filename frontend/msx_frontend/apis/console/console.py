"""The console of one server: its parts, and what runs while the server does."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING

from msx_frontend.apis.console.hub import Hub
from msx_frontend.apis.console.pages import StaticFiles
from msx_frontend.apis.console.parts import ConsoleParts, Sources
from msx_frontend.apis.console.uploads import Uploads
from msx_frontend.logs.recent import RecentLines
from msx_frontend.metrics.history import EVERY, RecentHistory
from msx_frontend.metrics.server import SECONDS
from msx_frontend.models.model_api import ModelApi

if TYPE_CHECKING:
    from msx_frontend.keys.tokens import Tokens

log = logging.getLogger("msx.console")


class ServerConsole:
    """`tokens` is None when authorization is off."""

    def __init__(self, sources: Sources, models: ModelApi, tokens: Tokens | None) -> None:
        self.sources = sources
        self.files = StaticFiles()
        self.history = RecentHistory(SECONDS)
        self.lines = RecentLines()
        self.parts = ConsoleParts(sources, self.history, self.lines)
        self.hub = Hub(self.parts)
        self.uploads = Uploads(sources.config, models)
        self._tokens = tokens
        self._task: asyncio.Task[None] | None = None

    @property
    def keys(self) -> bool:
        """The server asks for keys."""
        return self._tokens is not None

    def start(self, addresses: dict[str, str]) -> None:
        """`addresses`: of each listener."""
        self.parts.addresses = addresses
        self.lines.open()
        self._task = asyncio.create_task(self._sample(), name="console-history")

    async def close(self) -> None:
        self.lines.close()
        await self.hub.close()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def check_key(self, authorization: str | None) -> None:
        """Raises InvalidKey when the key of a stream is not good any more."""
        if self._tokens is not None:
            self._tokens.check_any(("management",), authorization)

    def sample(self, seconds: float) -> None:
        self.sources.metrics.gathered.settle()
        versions = self.sources.registry.all_versions()
        self.history.sample((one for version in versions for one in version.observed), seconds)

    async def _sample(self) -> None:
        last = time.monotonic()
        while True:
            await asyncio.sleep(EVERY)
            now = time.monotonic()
            try:
                self.sample(now - last)
            except Exception:
                log.exception("the history of the console misses a point")
            last = now
