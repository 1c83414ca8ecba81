"""OpenAI's list of models, with KServe v1's members beside OpenAI's: both protocols have these two paths. Anthropic
and Cohere have them, too; their clients say so by a header, and get another form."""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from msx_frontend.apis.openai.anthropic_list import anthropic_model, page
from msx_frontend.apis.openai.cohere_list import cohere_model, cohere_models
from msx_frontend.generation.client_forms import is_anthropic, is_cohere
from msx_frontend.generation.directory import Directory
from msx_frontend.models.describe import kserve_ready
from msx_frontend.models.versions.model_version import ModelVersion
from msx_net.http.family import Reply
from msx_net.http.request import Request


class ModelList:
    def __init__(self, directory: Directory) -> None:
        self._directory = directory

    async def list(self, request: Request) -> Reply:
        """The models that the key may use."""
        directory = self._directory.seen_by(request.call.limited_key)
        versions = directory.language_models()
        models = [*map(_described, versions), *_aliases(versions), *_adapters(versions)]
        if is_anthropic(request.call):
            return _json(page(models, request))
        if is_cohere(request.call):
            return _json(cohere_models(versions, request.query.get("endpoint")))
        return _json({"object": "list", "data": models, "models": directory.names()})

    async def show(self, request: Request) -> Reply:
        directory = self._directory.seen_by(request.call.limited_key)
        name = directory.plain(request.names["model"])
        adapters = {one["id"]: one for one in _adapters(directory.language_models())}
        form = anthropic_model if is_anthropic(request.call) else dict
        if name in adapters:
            return _json(form(adapters[name]))
        version = directory.default(name)
        if is_anthropic(request.call):
            return _json(form(_described(version, name)))
        if is_cohere(request.call):
            return _json(cohere_model(version, name))
        described = _described(version, name) if version in directory.language_models() else {}
        return _json({**described, **kserve_ready(version, name)})


def _json(value: dict[str, Any]) -> Reply:
    return Reply(msgspec.json.encode(value))


def list_of(version: ModelVersion) -> Reply:
    """The names by which one version may be asked for where the path names it."""
    base = _described(version)
    adapters = [{**base, "id": one, "root": one, "parent": base["id"]} for one in version.schema.adapter_names]
    return _json({"object": "list", "data": [base, *_aliases([version]), *adapters]})


def _aliases(versions: Sequence[ModelVersion]) -> Iterator[dict[str, Any]]:
    """Each is a model of its own to OpenAI's clients, as vLLM lists its served names."""
    return (_described(version, alias) for version in versions for alias in version.aliases)


def _adapters(versions: Sequence[ModelVersion]) -> Iterator[dict[str, Any]]:
    """Each is a model of its own to OpenAI's clients."""
    for version in versions:
        base = _described(version)
        for name in version.schema.adapter_names:
            yield {**base, "id": f"{base['id']}:{name}", "root": name, "parent": base["id"]}


def _described(version: ModelVersion, asked: str = "") -> dict[str, Any]:
    """`root` is the model's own name, where an alias is asked for."""
    described: dict[str, Any] = {
        "id": version.called(asked),
        "object": "model",
        "created": int(version.created),
        "owned_by": "msx",
    }
    if described["id"] != version.source.name:
        described["root"] = version.source.name
    if version.schema.capabilities and version.schema.capabilities.max_total_tokens:
        described["max_model_len"] = version.schema.capabilities.max_total_tokens
    return described
