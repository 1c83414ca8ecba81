"""`/console`: what an operator sees of the server in a browser, and does to it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import msgspec

from msx_core.service_errors import BadRequest
from msx_frontend.apis.console.console import ServerConsole
from msx_frontend.apis.console.details import understood
from msx_frontend.apis.console.pages import page_routes
from msx_frontend.apis.console.ways import ways_of
from msx_frontend.metrics.history import ALL
from msx_frontend.metrics.traces import Trace
from msx_frontend.models.parameters import integer
from msx_frontend.models.versions.model_version import ModelVersion
from msx_net.http.failures import own_failure
from msx_net.http.family import Family, Reply, Route
from msx_net.http.replies import status_reply
from msx_net.http.request import Request

PATH = "/console"
PLAYGROUND = "/playground"
MOST_TRACES = 200
EVENT_STREAM = (("content-type", "text/event-stream"),)


def console(shown: ServerConsole) -> Family:
    """Family of the management listener. The page itself is public; what it shows asks for the management key."""
    routes = (*page_routes(shown.files, PATH, "console.html", keys=shown.keys), *ConsoleRoutes(shown).routes())
    return Family("console", routes, own_failure, listener="management", owns=("console",), compress_replies=True)


def playground(shown: ServerConsole) -> Family:
    """Family of the inference listener, another origin than the console's: a page that asks models."""

    def management() -> str:
        return shown.parts.addresses.get("management", "")

    async def models(request: Request) -> Reply:
        registry = shown.sources.registry
        names = filter(request.call.may_use, registry.names())
        return _json({"models": [{"name": name, "ways": ways_of(registry.find(name))} for name in names]})

    page = page_routes(shown.files, PLAYGROUND, "playground.html", keys=shown.keys, other=management)
    routes = (*page, Route("GET", f"{PLAYGROUND}/models", models))
    return Family("playground", routes, own_failure, owns=("playground",), compress_replies=True)


class ConsoleRoutes:
    """Routes of the console: on a version, by the query parameters `model` and `version`, else on the whole server."""

    def __init__(self, shown: ServerConsole) -> None:
        self._shown = shown

    def routes(self) -> Iterator[Route]:
        yield _route("GET", "events", self.events)
        yield _route("GET", "history", self.history)
        yield _route("GET", "traces", self.traces)
        yield _route("GET", "lines", self.lines)
        yield _route("GET", "model", self.model)
        yield _route("PUT", "upload/{file_name}", self.upload)

    async def events(self, request: Request) -> Reply:
        if request.call.method == "HEAD":
            return Reply(b"", 200, EVENT_STREAM)
        hub, authorization = self._shown.hub, request.call.authorization
        feed = hub.open()
        request.when_over(lambda: hub.leave(feed))
        events = hub.events(feed, lambda: self._shown.check_key(authorization))
        request.when_left(lambda: hub.leave(feed))
        return Reply(events, 200, EVENT_STREAM)

    async def history(self, request: Request) -> Reply:
        history = self._shown.history
        series = history.series.get(ALL if "model" not in request.query else self._labels(request))
        fields = series.points(history.number) if series is not None else {}
        return _json({"ended": history.ended, "number": history.number, "fields": fields})

    async def traces(self, request: Request) -> Reply:
        """The newest first."""
        every = self._shown.sources.registry.all_versions()
        if "model" in request.query:
            every = [self._find(request)]
        slow, failed = list[Trace](), list[Trace]()
        for version in every:
            some, others = version.figures.traces.kept
            slow, failed = [*slow, *some], [*failed, *others]
        return _json({"slow": _newest(slow), "failed": _newest(failed)})

    async def lines(self, request: Request) -> Reply:
        after = integer(request.query, "after", 0) or 0
        lines = self._shown.lines.of(self._labels(request), after)
        return _json({"lines": [line._asdict() for line in lines]})

    async def model(self, request: Request) -> Reply:
        return _json(understood(self._find(request)))

    async def upload(self, request: Request) -> Reply:
        values = dict(request.query)
        return status_reply(*await self._shown.uploads.register(request.names["file_name"], request.body, values))

    def _labels(self, request: Request) -> tuple[str, str]:
        query = request.query
        if not (query.get("model") and query.get("version")):
            raise BadRequest("The parameters model and version are required.")
        return query["model"], query["version"]

    def _find(self, request: Request) -> ModelVersion:
        return self._shown.sources.registry.find(*self._labels(request))


def _newest(traces: list[Trace]) -> list[Trace]:
    return sorted(traces, key=lambda trace: -trace.number)[:MOST_TRACES]


def _route(method: str, path: str, answer: Callable[[Request], Awaitable[Reply]]) -> Route:
    return Route(method, f"{PATH}/{path}", answer, key="management", model="")


def _json(value: Any) -> Reply:
    return Reply(msgspec.json.encode(value))
