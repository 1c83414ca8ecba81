"""Steps of a start before it has the state folder: in an upgrade, while the server before still answers."""

from __future__ import annotations

import asyncio
import contextlib
import os
from contextlib import AsyncExitStack
from pathlib import Path
from typing import NamedTuple

from msx_core.service_errors import ServiceError
from msx_frontend.archives.download import Downloads
from msx_frontend.archives.hubs import Hubs
from msx_frontend.archives.model_store import ModelStore
from msx_frontend.archives.signed import key_ring
from msx_frontend.assembly.devices import FoundDevices
from msx_frontend.assembly.instance import check_folder
from msx_frontend.assembly.rehearsal import rehearse
from msx_frontend.config import ServerConfig
from msx_frontend.config.state_folder import state_folder
from msx_frontend.environments.interpreter import Interpreter, default_interpreter
from msx_frontend.models.startup.arguments import expand
from msx_frontend.supervision.client import SupervisorClient


class Preparation(NamedTuple):
    devices: FoundDevices
    interpreter: Interpreter
    """Interpreter of workers which need no other one."""
    store: ModelStore


async def prepare(config: ServerConfig, supervisor: SupervisorClient | None, parts: AsyncExitStack) -> Preparation:
    """Raises StartError or OSError, for a frontend that follows another one also what would end its start later: the
    other one goes on then."""
    follows = supervisor is not None and supervisor.follows
    folder = state_folder(config)
    if supervisor is not None and follows:
        check_folder(folder, supervisor.pid)
        await rehearse(config, supervisor)
    devices = await FoundDevices.look(config)
    parts.push_async_callback(devices.close)
    interpreter = await default_interpreter(config.python, os.environ)
    ring = await asyncio.to_thread(key_ring, config.require_signature, config.signature_keys)
    store = ModelStore(folder.model_store, folder, Downloads(config, folder.downloads), ring, Hubs(config, folder))
    if follows:
        await _unpack(config, store)
    return Preparation(devices, interpreter, store)


async def _unpack(config: ServerConfig, store: ModelStore) -> None:
    """Unpack archives of the start that are new. What is wrong with one is told when it is loaded."""
    for model in config.load_models:
        for _, place in expand(model, store):
            if isinstance(place, Path):
                with contextlib.suppress(ServiceError):
                    async with store.contents.using(place):
                        pass
