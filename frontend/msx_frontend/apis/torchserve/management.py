"""The management listener: TorchServe's endpoints over the calls of `ModelApi`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from msx_frontend.apis.torchserve.openapi import Operations, managed_model_description, management_description
from msx_frontend.apis.torchserve.routes import ANY, JsonReply, described_by, make_app, parameters, status_reply
from msx_frontend.errors import MethodNotAllowed, ResourceNotFound
from msx_frontend.keys.tokens import Tokens
from msx_frontend.models.describe import kserve_ready
from msx_frontend.models.health import Health
from msx_frontend.models.model_api import ModelApi
from msx_frontend.models.parameters import text
from msx_frontend.net.http.call import Call


class ManagementRoutes:
    """`more`: the routes of workflows and plugins; `described`: those of plugins."""

    def __init__(
        self,
        models: ModelApi,
        health: Health,
        tokens: Tokens | None,
        *,
        max_request_size: int,
        more: Sequence[Route] = (),
        described: Operations = (),
    ) -> None:
        self._models, self._health, self._tokens = models, health, tokens
        self._limit, self._more, self.described = max_request_size, more, described

    def app(self) -> Starlette:
        return make_app([*described_by(lambda: management_description(self.described)), *self.routes()])

    def routes(self) -> list[Route]:
        return [
            Route("/ping", self.ping, methods=ANY),
            Route("/token", self.token, methods=ANY),
            Route("/models", self.models, methods=ANY),
            Route("/models/{model}", self.model, methods=ANY),
            Route("/models/{model}/{version}", self.model, methods=ANY),
            Route("/models/{model}/{version}/set-default", self.set_default, methods=ANY),
            Route("/v1/models/{model}", self.kserve_ready, methods=ANY),
            *self._more,
        ]

    # -- the collection --

    async def models(self, request: Request) -> Response:
        if request.method in ("GET", "HEAD"):
            return JsonReply(self._models.models(request.query_params))
        if request.method != "POST":
            raise MethodNotAllowed
        return status_reply(*await self._models.register(await parameters(request, self._limit)))

    # -- one model --

    async def model(self, request: Request) -> Response:
        name, number = request.path_params["model"], request.path_params.get("version")
        if request.method in ("GET", "HEAD"):
            request_id = request.scope["msx.request_id"]
            return JsonReply(await self._models.describe(name, number, request.query_params, request_id))
        if request.method == "PUT":
            values = await parameters(request, self._limit)
            return status_reply(*await self._models.scale(name, number or text(values, "model_version"), values))
        if request.method == "DELETE":
            return status_reply(*await self._models.unregister(name, number))
        if request.method == "OPTIONS":
            self._models.find(name, number)
            return JsonReply(managed_model_description(name))
        raise MethodNotAllowed

    async def set_default(self, request: Request) -> Response:
        if request.method != "PUT":
            raise MethodNotAllowed
        return status_reply(
            *await self._models.set_default(request.path_params["model"], request.path_params["version"])
        )

    async def kserve_ready(self, request: Request) -> Response:
        """KServe v1."""
        if request.method not in ("GET", "HEAD"):
            raise MethodNotAllowed
        return JsonReply(kserve_ready(self._models.find(request.path_params["model"], None)))

    # -- the server --

    async def ping(self, request: Request) -> Response:
        status, word = self._health.ping()
        return status_reply(word, status)

    async def token(self, request: Request) -> Response:
        """A new key of the kind `type`, for who has the API key."""
        if self._tokens is None:
            raise ResourceNotFound
        kind = request.query_params.get("type")
        call: Call = request.scope["msx.call"]
        call.key = await asyncio.to_thread(self._tokens.regenerate, kind, call.authorization)
        return Response(b"", media_type="application/json")
