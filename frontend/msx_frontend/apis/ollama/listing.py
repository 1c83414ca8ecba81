"""Ollama's lists of models, and what one can do."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import msgspec

from msx_core.generation import Capabilities
from msx_core.rfc3339 import rfc3339
from msx_frontend.apis.ollama.request import ShowModel, plain_name
from msx_frontend.generation.directory import LATEST, Directory
from msx_frontend.generation.errors import WrongParameter
from msx_frontend.generation.replies import WholeReply
from msx_frontend.generation.text_request import TextRequest
from msx_frontend.models.versions.model_version import ModelVersion
from msx_net.http.family import Reply
from msx_net.http.request import Request

NEVER = "9999-12-31T23:59:59Z"
"""When a model is unloaded."""
SPOKEN = "0.12.6"
"""Version of Ollama whose API this is. Clients read three numbers, and refuse those of before what they need."""


class OllamaModels:
    def __init__(self, directory: Directory) -> None:
        self._directory = directory

    async def version(self, request: Request) -> Reply:
        return _json({"version": SPOKEN})

    async def tags(self, request: Request) -> Reply:
        return _json({"models": [_listed(*one) for one in self._named(request)]})

    async def running(self, request: Request) -> Reply:
        ready = [(name, version) for name, version in self._named(request) if version.workers.answer]
        return _json({"models": [{**_listed(*one), **_loaded(one[1])} for one in ready]})

    def _named(self, request: Request) -> Iterator[tuple[str, ModelVersion]]:
        """The models that the key may use, by each of their names."""
        for version in self._directory.seen_by(request.call.limited_key).language_models():
            yield version.source.name, version
            yield from ((alias, version) for alias in version.aliases)


def show(request: TextRequest) -> WholeReply:
    """Raises WrongParameter and ModelNotFound."""
    asked = request.read(ShowModel)
    if not (name := plain_name(asked.model or asked.name)):
        raise WrongParameter("model", "needed, and missing")
    return WholeReply(_shown(request.directory.default(name)))


def _json(value: dict[str, Any]) -> Reply:
    return Reply(msgspec.json.encode(value))


def _offered(version: ModelVersion) -> Capabilities:
    return version.schema.capabilities or Capabilities()


def _listed(name: str, version: ModelVersion) -> dict[str, Any]:
    return {
        "name": name + LATEST,
        "model": name + LATEST,
        "modified_at": _time(version),
        "size": 0,
        "digest": hashlib.sha256(f"{version.source.name}/{version.source.version}".encode()).hexdigest(),
        "details": _details(version),
    }


def _details(version: ModelVersion) -> dict[str, Any]:
    family = _offered(version).model_type
    return {
        "parent_model": "",
        "format": "safetensors",
        "family": family,
        "families": [family] if family else [],
        "parameter_size": "",
        "quantization_level": "",
    }


def _loaded(version: ModelVersion) -> dict[str, Any]:
    return {"expires_at": NEVER, "size_vram": 0, "context_length": _offered(version).max_total_tokens or 0}


def _shown(version: ModelVersion) -> dict[str, Any]:
    offered = _offered(version)
    family = offered.model_type or "unknown"
    info: dict[str, Any] = {"general.architecture": family, "general.basename": version.source.name}
    if context := offered.max_total_tokens or offered.max_input_tokens:
        info[f"{family}.context_length"] = context
    if offered.embedding_size:
        info[f"{family}.embedding_length"] = offered.embedding_size
    return {
        "modelfile": "",
        "parameters": "",
        "template": "",
        "details": _details(version),
        "model_info": info,
        "capabilities": list(_capabilities(offered)),
        "modified_at": _time(version),
    }


def _capabilities(offered: Capabilities) -> Iterator[str]:
    if offered.generate:
        yield "completion"
    if offered.generate and "tools" in (offered.template_variables or ("tools",)) and offered.chat:
        yield "tools"
    if offered.reasoning_parser:
        yield "thinking"
    if offered.max_images:
        yield "vision"
    if offered.embed:
        yield "embedding"


def _time(version: ModelVersion) -> str:
    return rfc3339(version.created)
