"""The endpoints of plugins, as families of their listeners."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence

from msx_core.plugins import EndpointRequest, EndpointResponse, ServerView
from msx_core.request import Headers as RequestHeaders
from msx_core.service_errors import ServiceError
from msx_frontend.apis.plugins.endpoints import PluginEndpoint, make_endpoint
from msx_frontend.installed_plugins import Plugin, PluginError
from msx_net.http.failures import torchserve_failure
from msx_net.http.family import Family, Headers, ListenerName, Reply, Route
from msx_net.http.request import Request
from msx_net.http.wire import BODYLESS, json_bytes, own_headers
from msx_net.keys import Kind

LISTENERS: tuple[ListenerName, ...] = ("inference", "management", "metrics")
KEYS: dict[str, Kind | None] = {"inference": "inference", "management": "management", "metrics": None}
"""The kind of key that opens an endpoint of a listener; the metrics listener asks for none."""


class PluginEndpoints:
    def __init__(self, plugins: Sequence[Plugin], server: ServerView, limit: float) -> None:
        """Make the endpoints; `limit` is in seconds of a call. Raises PluginError."""
        self._all: dict[str, PluginEndpoint] = {}
        for plugin in plugins:
            self._add(make_endpoint(plugin, server, limit))

    def _add(self, made: PluginEndpoint) -> None:
        path = made.endpoint.path
        if path in self._all:
            raise PluginError(f"The plugins {self._all[path].label} and {made.label} both want the path /{path}.")
        self._all[path] = made

    def families(self, taken: Collection[str]) -> list[Family]:
        """One family for each listener that has endpoints. `taken`: first segments of the server's own paths.

        Raises PluginError.
        """
        for path, made in self._all.items():
            if path in taken:
                raise PluginError(f"The plugin {made.label} wants the path /{path}, which is the server's own.")
        found = [(listener, tuple(self._routes(listener))) for listener in LISTENERS]
        return [_family(listener, routes) for listener, routes in found if routes]

    def _routes(self, listener: ListenerName) -> Iterator[Route]:
        for made in self._all.values():
            if made.endpoint.listener == listener:
                yield from _routes_of(made)


def _family(listener: ListenerName, routes: tuple[Route, ...]) -> Family:
    return Family("plugins", routes, torchserve_failure, listener=listener, closes_on_error=True, takes_as_sent=True)


def _routes_of(made: PluginEndpoint) -> Iterator[Route]:
    path, text = f"/{made.endpoint.path}", made.endpoint.description or f"The plugin {made.label}"
    key = None if made.endpoint.open else KEYS[made.endpoint.listener]
    answer = _answer_of(made)
    for method in made.methods:
        operation = f"{method}_{made.endpoint.path}"
        yield Route(method.upper(), path, answer, key=key, summary=text, operation=operation)
        yield Route(method.upper(), f"{path}/{{rest:path}}", answer, key=key)


def _answer_of(made: PluginEndpoint) -> Callable[[Request], Awaitable[Reply]]:
    async def answer(request: Request) -> Reply:
        call, query = request.call, request.query
        asked = EndpointRequest(
            id=call.id,
            method=call.method,
            path=request.names.get("rest", ""),
            query={name: query.getlist(name) for name in query},
            headers=RequestHeaders(call.headers()),
            body=request.body,
        )
        return await _reply(made.label, await made.answer(asked))

    return answer


async def _reply(label: str, answer: EndpointResponse) -> Reply:
    try:
        body, kind = await _encoded(answer.body)
        headers = _headers(answer, kind)
        status = _final(answer.status)
    except (TypeError, ValueError, AttributeError) as error:
        raise ServiceError(f"The plugin {label} answered what is not a response: {error}") from error
    return Reply(b"" if status in BODYLESS else body, status, headers)


def _headers(answer: EndpointResponse, kind: str | None) -> Headers:
    headers = list(answer.headers.items())
    own_headers(headers)  # raises for what HTTP does not allow, while the plugin can be named
    content_type = answer.content_type or kind
    if content_type and not any(name.lower() == "content-type" for name, _ in headers):
        headers.append(("content-type", content_type))
    return headers


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
