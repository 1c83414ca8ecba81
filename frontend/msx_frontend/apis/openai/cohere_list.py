"""The list of models in Cohere's form, whose path is OpenAI's: https://docs.cohere.com/reference/list-models"""

from collections.abc import Iterator, Sequence
from typing import Any

from msx_core.generation import Capabilities
from msx_frontend.models.versions.model_version import ModelVersion

ENDPOINTS = {"chat": "chat", "embed": "embed", "classify": "classify", "rerank": "rerank", "generate": "generate"}
"""Cohere's names of what models do, and those of their capabilities."""


def cohere_models(versions: Sequence[ModelVersion], endpoint: str | None) -> dict[str, Any]:
    """All models by each of their names; with an endpoint those that have it."""
    found = [cohere_model(version, name) for version in versions for name in _names(version)]
    return {"models": [one for one in found if endpoint is None or endpoint in one["endpoints"]]}


def cohere_model(version: ModelVersion, name: str) -> dict[str, Any]:
    offered = version.schema.capabilities or Capabilities()
    return {
        "name": name,
        "endpoints": [endpoint for endpoint, member in ENDPOINTS.items() if getattr(offered, member)],
        "finetuned": False,
        "context_length": offered.max_total_tokens or offered.max_input_tokens,
    }


def _names(version: ModelVersion) -> Iterator[str]:
    own = version.source.name
    yield own
    yield from version.aliases
    yield from (f"{own}:{adapter}" for adapter in version.schema.adapter_names)
