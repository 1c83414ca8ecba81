"""The routed endpoints of the inference listener; predictions have an endpoint of their own."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from msx_frontend.apis.torchserve.openapi import Operations, inference_description
from msx_frontend.apis.torchserve.routes import ANY, described_by, make_app, status_reply
from msx_frontend.models.health import Health


class InferenceRoutes:
    """`more`: the routes of workflows and plugins; `described`: those of plugins."""

    def __init__(self, health: Health, more: Sequence[Route] = (), described: Operations = ()) -> None:
        self._health, self._more, self.described = health, more, described

    def app(self) -> Starlette:
        return make_app([*described_by(lambda: inference_description(self.described)), *self.routes()])

    def routes(self) -> list[Route]:
        return [
            Route("/ping", self.ping, methods=ANY),
            Route("/livez", self.live, methods=ANY),
            Route("/readyz", self.ready, methods=ANY),
            *self._more,
        ]

    async def ping(self, request: Request) -> Response:
        status, text = self._health.ping()
        return status_reply(text, status)

    async def live(self, request: Request) -> Response:
        """The process answers: nothing more."""
        return status_reply("Alive")

    async def ready(self, request: Request) -> Response:
        return status_reply(self._health.detail(), 200 if self._health.ready() else 503)
