"""Starts the server of a start script. It has no listeners but those that its configuration names, and the script
opens."""

from collections.abc import Callable
from contextlib import AsyncExitStack

import msgspec

from msx_core.service_errors import ServiceUnavailable
from msx_frontend.embedding import GRPC, HTTP, UNFINISHED, GivenSettings, LogOutput, Server, start_server
from msx_mindspore_serving.script.commands import ScriptCommands
from msx_mindspore_serving.script.endpoints import ScriptEndpoints
from msx_mindspore_serving.script.servables import ScriptServables
from msx_mindspore_serving.script.texts import ScriptTexts


async def start_for_script(
    settings: GivenSettings,
    output: LogOutput,
    parts: AsyncExitStack,
    script: str,
    ended: Callable[[str], None],
) -> tuple[Server, ScriptCommands]:
    """`ended` is called with the reason when the server has nothing left to serve with. Raises StartError."""
    listeners = named_listeners(settings)
    if not listeners:  # so that nobody needs a key
        open_to_all = msgspec.structs.replace(settings.config, disable_token_authorization=True, api_keys_file=None)
        settings = settings._replace(config=open_to_all)
    server = await start_server(settings, output, parts, listeners, script)
    management, store = server.models.management, server.models.context.folder.model_store
    servables = ScriptServables(management, store, ended)
    endpoints = ScriptEndpoints(server)
    parts.push_async_callback(endpoints.close)
    parts.callback(server.models.cancel_all, ServiceUnavailable(UNFINISHED))
    parts.callback(servables.close)
    return server, ScriptCommands(server, endpoints, servables, ScriptTexts(management, store))


def named_listeners(settings: GivenSettings) -> list[str]:
    """Listeners by how their keys begin."""
    given = settings.given
    named = [name for name in HTTP if f"{name}_address" in given]
    named += [name for name in GRPC if {f"{name}_address", f"{name}_port"} & given]
    if settings.config.merged and "management" in named and "inference" not in named:
        named.append("inference")
    return named
