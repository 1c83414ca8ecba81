"""OpenAI's list of models."""

from __future__ import annotations

from typing import Any

from msx_frontend.errors import ModelNotFound
from msx_frontend.llm.exchange import Request
from msx_frontend.llm.replies import Reply, Whole
from msx_frontend.model_version import ModelVersion


async def list_models(request: Request) -> Reply:
    models = [_described(version) for version in request.directory.language_models()]
    return Whole({"object": "list", "data": models})


async def show_model(request: Request) -> Reply:
    name = request.path["model"]
    for version in request.directory.language_models():
        if version.source.name == name:
            return Whole(_described(version))
    raise ModelNotFound(name)


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
