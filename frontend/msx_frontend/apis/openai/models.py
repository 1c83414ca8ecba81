"""OpenAI's list of models, with KServe v1's members beside OpenAI's: both protocols have these two paths."""

from __future__ import annotations

from typing import Any

from msx_frontend.generation.exchange import Request
from msx_frontend.generation.replies import Reply, Whole
from msx_frontend.models.describe import kserve_ready
from msx_frontend.models.model_version import ModelVersion


async def list_models(request: Request) -> Reply:
    models = [_described(version) for version in request.directory.language_models()]
    return Whole({"object": "list", "data": models, "models": request.directory.names()})


async def show_model(request: Request) -> Reply:
    request.call.check_model(request.path["model"])
    version = request.directory.default(request.path["model"])
    described = _described(version) if version in request.directory.language_models() else {}
    return Whole({**described, **kserve_ready(version)})


def _described(version: ModelVersion) -> dict[str, Any]:
    described: dict[str, Any] = {
        "id": version.source.name,
        "object": "model",
        "created": int(version.created),
        "owned_by": "msx",
    }
    if version.capabilities and version.capabilities.max_total_tokens:
        described["max_model_len"] = version.capabilities.max_total_tokens
    return described
