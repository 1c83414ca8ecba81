"""The endpoints of plugins, as routes of their listeners."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from msx_frontend.apis.plugins.endpoints import PluginEndpoint, make_endpoint
from msx_frontend.apis.torchserve.openapi import INFERENCE, MANAGEMENT, METRICS, Operation
from msx_frontend.apis.torchserve.routes import ANY, read_whole
from msx_frontend.errors import ServiceError
from msx_frontend.generation.endpoint import EXACT
from msx_frontend.keys.key import Kind
from msx_frontend.net.http.wire import BODYLESS, json_bytes, own_headers
from msx_frontend.plugins.loading import Plugin, PluginError
from msx_sdk.plugins import EndpointRequest, EndpointResponse, ServerView
from msx_sdk.request import Headers

OURS = {path.split("/")[1] for path in (*EXACT, *(one.path for one in (*INFERENCE, *MANAGEMENT, *METRICS)))}
OURS = (OURS - {"", "{model_name}"}) | {"v2"}
"""First segments that no plugin can have."""


class Addition(NamedTuple):
    """What a listener serves besides its own, and how it is described."""

    routes: Sequence[Route] = ()
    operations: Sequence[Operation] = ()


class PluginEndpoints:
    def __init__(self, plugins: Sequence[Plugin], server: ServerView, max_request_size: int, limit: float) -> None:
        """Makes them; `limit`: seconds of a call. Raises PluginError."""
        self._size = max_request_size
        self._all: dict[str, PluginEndpoint] = {}
        for plugin in plugins:
            self._add(make_endpoint(plugin, server, limit))

    def _add(self, made: PluginEndpoint) -> None:
        path = made.endpoint.path
        if path in OURS:
            raise PluginError(f"The plugin {made.label} wants the path /{path}, which is the server's own.")
        if path in self._all:
            raise PluginError(f"The plugins {self._all[path].label} and {made.label} both want the path /{path}.")
        self._all[path] = made

    def of(self, listener: str) -> Addition:
        found = [made for made in self._all.values() if made.endpoint.listener == listener]
        routes = [route for made in found for route in self._routes(made)]
        return Addition(routes, [operation for made in found for operation in _operations(made)])

    def keys(self, *listeners: str) -> Mapping[str, tuple[Kind, ...]]:
        """Which keys open a path of these listeners, by its first segment; the metrics listener asks for none."""
        kinds: dict[str, tuple[Kind, ...]] = {"inference": ("inference",), "management": ("management",)}
        return {
            path: () if made.endpoint.open else kinds.get(made.endpoint.listener, ())
            for path, made in self._all.items()
            if made.endpoint.listener in listeners
        }

    def _routes(self, made: PluginEndpoint) -> list[Route]:
        async def serve(request: Request) -> Response:
            query = {name: request.query_params.getlist(name) for name in request.query_params}
            asked = EndpointRequest(
                id=request.scope["msx.request_id"],
                method=request.method,
                path=request.path_params.get("rest", ""),
                query=query,
                headers=Headers(list(request.headers.items())),
                body=await read_whole(request, self._size),
            )
            return await _reply(made.label, await made.answer(asked))

        path = f"/{made.endpoint.path}"
        return [Route(path, serve, methods=ANY), Route(f"{path}/{{rest:path}}", serve, methods=ANY)]


def _operations(made: PluginEndpoint) -> list[Operation]:
    path, text = made.endpoint.path, made.endpoint.description or f"The plugin {made.label}"
    return [Operation(f"/{path}", method, f"{method}_{path}", text) for method in made.methods]


async def _reply(label: str, answer: EndpointResponse) -> Response:
    try:
        body, kind = await _encoded(answer.body)
        headers = own_headers(list(answer.headers.items()))
        content_type = answer.content_type or kind
        if content_type and not any(name == b"content-type" for name, _ in headers):
            headers.append((b"content-type", content_type.encode("latin-1")))
        reply = Response(b"" if answer.status in BODYLESS else body, _final(answer.status))
    except (TypeError, ValueError, AttributeError) as error:
        raise ServiceError(f"The plugin {label} answered what is no response: {error}") from error
    reply.raw_headers += headers
    return reply


def _final(status: int) -> int:
    if not 200 <= status <= 599:
        raise ValueError(f"{status} is not a final HTTP status (200 to 599)")
    return int(status)


async def _encoded(body: object) -> tuple[bytes, str | None]:
    if isinstance(body, (bytes, bytearray)):
        return bytes(body), None
    if isinstance(body, str):
        return body.encode(), "text/plain; charset=utf-8"
    return await asyncio.to_thread(json_bytes, body), "application/json"
