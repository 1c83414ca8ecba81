"""One model of a hub, fetched by the rules of a server that does not run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from msx_frontend.archives.archive_url import ArchiveUrl
from msx_frontend.archives.download import Downloads
from msx_frontend.archives.hubs import Hubs
from msx_frontend.archives.model_store import ModelStore
from msx_frontend.archives.signed import key_ring
from msx_frontend.config import ServerConfig
from msx_frontend.config.state_folder import state_folder


class FetchedModel(NamedTuple):
    """`path`: the model's folder; `url` names what is in it, and no later content."""

    path: Path
    url: str


async def fetched(url: str, config: ServerConfig, say: Callable[[str], None], every: float) -> FetchedModel:
    """Fetch what is not there yet. `say` is told how far it is, each `every` seconds at most. Raises ServiceError,
    StartError, OSError."""
    store = _store(config)
    telling = asyncio.create_task(_tell(store, url, say, every))
    try:
        async with store.obtained(ArchiveUrl.parse(url), name=url) as found:
            return FetchedModel(found.path, found.url)
    finally:
        telling.cancel()


def _store(config: ServerConfig) -> ModelStore:
    folder = state_folder(config)
    folder.make()
    ring = key_ring(config.require_signature, config.signature_keys)
    return ModelStore(folder.model_store, folder, Downloads(config, folder.downloads), ring, Hubs(config, folder))


async def _tell(store: ModelStore, name: str, say: Callable[[str], None], every: float) -> None:
    told = ""
    while True:
        await asyncio.sleep(every)
        if (fetch := store.fetches.find(name)) is not None and fetch.phase != told:
            told = fetch.phase
            say(told)
