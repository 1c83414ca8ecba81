"""A whole server in the process of the test, on free ports."""

from __future__ import annotations

import io
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from msx_frontend.assembly.server import Server, start_server
from msx_frontend.config import ServerConfig
from msx_frontend.config.load import GivenSettings
from msx_frontend.logs.output import set_up_logging
from msx_net.listening.address import Address


def config_of(folder: Path, **options: Any) -> ServerConfig:
    store = folder / "store"
    store.mkdir(exist_ok=True)
    free = Address("http", "127.0.0.1", 0)
    given = {
        "model_store": store,
        "inference_address": free,
        "management_address": free,
        "metrics_address": free,
        "grpc_inference_port": 0,
        "grpc_management_port": 0,
        "number_of_npu": 0,
        "disable_token_authorization": True,
        "disable_system_metrics": True,
        **options,
    }
    return ServerConfig(**given)


async def started(config: ServerConfig, parts: AsyncExitStack, log: io.StringIO | None = None) -> Server:
    settings = GivenSettings(config, [], frozenset())
    return await start_server(settings, set_up_logging(None, log or io.StringIO()), parts)
