"""The routed endpoints of the inference listener; predictions have an endpoint of their own."""

from __future__ import annotations

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from msx_frontend.errors import MethodNotAllowed
from msx_frontend.health import Health
from msx_frontend.http.openapi import inference_description, model_description
from msx_frontend.http.routes import ANY, JsonReply, make_app, status_reply
from msx_frontend.registry import Registry

PROBES = frozenset({"/livez", "/readyz"})
"""Answered without a token: they tell nothing but yes or no."""


class InferenceRoutes:
    def __init__(self, registry: Registry, health: Health) -> None:
        self._registry, self._health = registry, health

    def app(self) -> Starlette:
        return make_app(
            [
                Route("/", self.root, methods=ANY),
                Route("/api-description", self.describe_api, methods=ANY),
                Route("/ping", self.ping, methods=ANY),
                Route("/livez", self.live, methods=ANY),
                Route("/readyz", self.ready, methods=ANY),
                Route("/predictions/{model}", self.describe_model, methods=["OPTIONS"]),
                Route("/predictions/{model}/{rest:path}", self.describe_model, methods=["OPTIONS"]),
            ]
        )

    async def root(self, request: Request) -> Response:
        if request.method != "OPTIONS":
            raise MethodNotAllowed
        return await self.describe_api(request)

    async def describe_api(self, request: Request) -> Response:
        return JsonReply(inference_description())

    async def describe_model(self, request: Request) -> Response:
        name = request.path_params["model"]
        self._registry.find(name)
        return JsonReply(model_description(name))

    async def ping(self, request: Request) -> Response:
        status, text = self._health.ping()
        return status_reply(text, status)

    async def live(self, request: Request) -> Response:
        """The process answers: nothing more."""
        return status_reply("Alive")

    async def ready(self, request: Request) -> Response:
        if self._health.ready():
            return status_reply("Ready")
        return status_reply(f"Not ready: {self._health.not_ready_because()}", 503)
