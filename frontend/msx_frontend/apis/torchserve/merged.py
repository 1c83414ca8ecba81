"""One listener for inference and management, where their addresses are equal: it serves everything, metrics too."""

from __future__ import annotations

from starlette.applications import Starlette
from starlette.routing import Route

from msx_frontend.apis.torchserve.inference import InferenceRoutes
from msx_frontend.apis.torchserve.management import ManagementRoutes
from msx_frontend.apis.torchserve.openapi import merged_description
from msx_frontend.apis.torchserve.routes import described_by, make_app


def merged_app(inference: InferenceRoutes, management: ManagementRoutes, metrics: list[Route]) -> Starlette:
    more = [*inference.described, *management.described]
    return make_app(
        [*described_by(lambda: merged_description(more)), *inference.routes(), *management.routes(), *metrics]
    )
