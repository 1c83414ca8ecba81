"""The console of a server whose workers are fake."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from msx_core.service_errors import InvalidKey
from msx_frontend.apis.console.console import ServerConsole
from msx_frontend.apis.console.family import console
from msx_frontend.apis.console.parts import Sources
from msx_frontend.keys.key import Key
from msx_frontend.models.model_api import ModelApi
from tests.frontend.harness import Harness, open_harness
from tests.net.http.client import Exchange, FakeAccessLog, ask, begin
from tests.net.http.exchanges import exchange_of


class FakeKeys:
    """Keys that are good until a test says otherwise."""

    def __init__(self) -> None:
        self.good = True

    def check_any(self, kinds: tuple[str, ...], authorization: str | None) -> Key:
        if not self.good:
            raise InvalidKey("The key has expired.")
        return Key(b"", frozenset())


class Opened(NamedTuple):
    harness: Harness
    console: ServerConsole
    edge: Any
    keys: FakeKeys

    async def get(self, path: str) -> Exchange:
        return await ask(self.edge, "GET", f"/console/{path}")

    def stream(self) -> Exchange:
        return begin(self.edge, "GET", "/console/events")


@asynccontextmanager
async def open_console(folder: Path, **config: Any) -> AsyncIterator[Opened]:
    async with open_harness(folder, **config) as harness:
        sources = Sources(harness.config, harness.registry, harness.health, harness.metrics, list)
        models = ModelApi(harness.management, enabled=harness.config.enable_model_api)
        keys: Any = FakeKeys()
        shown = ServerConsole(sources, models, keys)
        shown.start({"inference": "http://127.0.0.1:8080"})
        edge = exchange_of(console(shown), log=FakeAccessLog(), limit=1 << 20)
        try:
            yield Opened(harness, shown, edge, keys)
        finally:
            await shown.close()


def events(stream: Exchange) -> list[tuple[str, Any]]:
    """Events that a browser has read so far, without the comments."""
    stream.read()
    found = []
    for text in stream.body.decode().split("\n\n"):
        lines = dict(line.split(": ", 1) for line in text.splitlines() if not line.startswith(":"))
        if lines:
            found.append((lines["event"], msgspec.json.decode(lines["data"])))
    return found
