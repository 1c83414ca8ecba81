"""The metrics listener."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from msx_frontend.apis.torchserve.openapi import Operations, metrics_description
from msx_frontend.apis.torchserve.routes import ANY, described_by, make_app
from msx_frontend.metrics import ServerMetrics
from msx_frontend.metrics.exposition import CONTENT_TYPE


def metrics_app(metrics: ServerMetrics, more: Sequence[Route] = (), described: Operations = ()) -> Starlette:
    """`more`: the routes of plugins, and how they are described."""
    return make_app([*described_by(lambda: metrics_description(described)), *metrics_routes(metrics), *more])


def metrics_routes(metrics: ServerMetrics) -> list[Route]:
    async def expose(request: Request) -> Response:
        names = frozenset(request.query_params.getlist("name[]"))
        return Response(await metrics.expose(names), media_type=CONTENT_TYPE)

    return [Route("/metrics", expose, methods=ANY), Route("/metrics/{rest:path}", expose, methods=ANY)]
