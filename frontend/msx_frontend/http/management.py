"""The management listener: TorchServe's endpoints over the operations of `Management`."""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from msx_frontend.customized import customized_metadata
from msx_frontend.describe import describe
from msx_frontend.errors import BadRequest, MethodNotAllowed, ModelApiDisabled, ResourceNotFound
from msx_frontend.health import Health
from msx_frontend.http.openapi import management_description, model_description
from msx_frontend.http.routes import ANY, JsonReply, boolean, integer, make_app, parameters, status_reply, text
from msx_frontend.management import Management
from msx_frontend.model_version import ModelVersion
from msx_frontend.registration import Registration
from msx_frontend.tokens import Tokens

MOST_LISTED = 100


class ManagementRoutes:
    def __init__(
        self, management: Management, health: Health, tokens: Tokens | None, *, model_api: bool, max_request_size: int
    ) -> None:
        self._management, self._health, self._tokens = management, health, tokens
        self._model_api, self._limit = model_api, max_request_size

    def app(self) -> Starlette:
        return make_app(
            [
                Route("/", self.root, methods=ANY),
                Route("/api-description", self.describe_api, methods=ANY),
                Route("/ping", self.ping, methods=ANY),
                Route("/token", self.token, methods=ANY),
                Route("/models", self.models, methods=ANY),
                Route("/models/{model}", self.model, methods=ANY),
                Route("/models/{model}/{version}", self.model, methods=ANY),
                Route("/models/{model}/{version}/set-default", self.set_default, methods=ANY),
            ]
        )

    # -- the collection --

    async def models(self, request: Request) -> Response:
        if request.method in ("GET", "HEAD"):
            return self._list(request)
        if request.method != "POST":
            raise MethodNotAllowed
        return await self._register(request)

    def _list(self, request: Request) -> Response:
        """TorchServe's paging: a next token is given as long as it is not beyond the number of models."""
        limit = _number(request, "limit", MOST_LISTED)
        if not 0 <= limit <= MOST_LISTED:
            limit = MOST_LISTED
        start = max(_number(request, "next_page_token", 0), 0)
        names = self._management.registry.names()
        page = [self._management.registry.find(name) for name in names[start : start + limit]]
        entries = [{"modelName": version.source.name, "modelUrl": version.source.url} for version in page]
        following = {"nextPageToken": str(start + limit)} if start + limit <= len(names) else {}
        return JsonReply({**following, "models": entries})

    async def _register(self, request: Request) -> Response:
        if not self._model_api:
            raise ModelApiDisabled
        wanted = _registration(await parameters(request, self._limit))
        version = await self._management.register(wanted)
        return _registered(version, wanted)

    # -- one model --

    async def model(self, request: Request) -> Response:
        name, number = request.path_params["model"], request.path_params.get("version")
        if request.method in ("GET", "HEAD"):
            return await self._describe(request, name, number)
        if request.method == "PUT":
            return await self._scale(request, name, number)
        if request.method == "DELETE":
            return await self._unregister(name, number)
        if request.method == "OPTIONS":
            self._management.registry.find(name, number)
            return JsonReply(model_description(name))
        raise MethodNotAllowed

    async def _describe(self, request: Request, name: str, number: str | None) -> Response:
        if number == "all":
            return JsonReply([describe(version) for version in self._management.registry.versions_of(name)])
        version = self._management.registry.find(name, number)
        described = describe(version)
        if boolean(request.query_params, "customized", False):
            described["customizedMetadata"] = await customized_metadata(
                version, number, request.scope["msx.request_id"]
            )
        return JsonReply([described])

    async def _scale(self, request: Request, name: str, number: str | None) -> Response:
        values = await parameters(request, self._limit)
        number = number or text(values, "model_version")
        least = integer(values, "min_worker", 1)
        assert least is not None
        if least < 0:
            raise BadRequest(f"min_worker must be 0 or more, not {least}.")
        most = integer(values, "max_worker", least)
        assert most is not None
        wait = boolean(values, "synchronous", False)
        await self._management.scale(name, number, least, most, wait=wait)
        if not wait:
            return status_reply("Processing worker updates...", 202)
        version = f", version: {number}" if number else ""
        return status_reply(f"Workers scaled to {least} for model: {name}{version}")

    async def _unregister(self, name: str, number: str | None) -> Response:
        if not self._model_api:
            raise ModelApiDisabled
        await self._management.unregister(name, number)
        return status_reply(f'Model "{name}" unregistered')

    async def set_default(self, request: Request) -> Response:
        if request.method != "PUT":
            raise MethodNotAllowed
        name, number = request.path_params["model"], request.path_params["version"]
        await self._management.set_default(name, number)
        return status_reply(f'Default version successfully updated for model "{name}" to "{number}"')

    # -- the server --

    async def root(self, request: Request) -> Response:
        if request.method != "OPTIONS":
            raise MethodNotAllowed
        return await self.describe_api(request)

    async def describe_api(self, request: Request) -> Response:
        return JsonReply(management_description())

    async def ping(self, request: Request) -> Response:
        status, word = self._health.ping()
        return status_reply(word, status)

    async def token(self, request: Request) -> Response:
        """A new key of the kind `type`, for who has the API key."""
        if self._tokens is None:
            raise ResourceNotFound
        kind = request.query_params.get("type")
        await asyncio.to_thread(self._tokens.regenerate, kind, request.headers.get("authorization"))
        return Response(b"", media_type="application/json")


def _registration(values: dict[str, Any]) -> Registration:
    if "url" not in values:
        raise BadRequest("Parameter url is required.")
    runtime = text(values, "runtime")
    if runtime is not None and runtime not in ("python", "python3", "LSP"):
        raise BadRequest(f"Invalid RuntimeType value: {runtime}")
    workers = integer(values, "initial_workers")
    return Registration(
        url=str(values["url"]),
        model_name=text(values, "model_name"),
        handler=text(values, "handler"),
        runtime=runtime,
        batch_size=_positive(values, "batch_size"),
        max_batch_delay=_positive(values, "max_batch_delay", least=0),
        initial_workers=None if workers is None else max(workers, 0),
        response_timeout=_positive(values, "response_timeout"),
        startup_timeout=_positive(values, "startup_timeout"),
        synchronous=boolean(values, "synchronous", True),
        replace=boolean(values, "replace", False),
    )


def _positive(values: dict[str, Any], name: str, least: int = 1) -> int | None:
    value = integer(values, name)
    if value is not None and value < least:
        raise BadRequest(f"{name} must be {least} or more, not {value}.")
    return value


def _registered(version: ModelVersion, wanted: Registration) -> Response:
    source, workers = version.source, version.min_workers
    head = f'Model "{source.name}" Version: {source.version} registered with {workers} initial workers'
    if not workers:
        return status_reply(f"{head}. Use scale workers API to add workers for the model.")
    if not wanted.synchronous:
        return status_reply("Processing worker updates...", 202)
    return status_reply(head)


def _number(request: Request, name: str, default: int) -> int:
    value = integer(request.query_params, name)
    return default if value is None else value
