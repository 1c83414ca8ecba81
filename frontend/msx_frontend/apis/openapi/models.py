"""Paths of single models, of whose bodies something is known: their tensors, or their handlers' types."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple
from urllib.parse import quote

from msx_frontend.apis.openapi.operations import operation_id
from msx_frontend.apis.openapi.schemas import Schema
from msx_frontend.models.body_schemas import JSON_TYPE, BodySchemas, bodies, body_schemas, tensor_bodies
from msx_frontend.models.shared_schemas import SharedSchemas
from msx_sdk._internal.methods import Methods
from msx_sdk.kserve import Signature

KSERVE, PREDICTIONS = "/v2/models/{model}/infer", "/predictions/{model_name}"
METHOD = "/predictions/{model_name}:{method}"
"""The routes of all models of which these are."""


class DescribedModel(NamedTuple):
    name: str
    signature: Signature
    methods: Methods = ()


def with_models(document: Schema, models: Iterable[DescribedModel]) -> Schema:
    """The document with paths of these models; what the routes of all models have (key, errors, tag) they have, too."""
    paths, components = dict(document["paths"]), document["components"]
    shared = SharedSchemas(components.get("schemas"))
    for model in models:
        for template, method, request, reply in _routes(model, shared):
            if general := document["paths"].get(template, {}).get("post"):
                path = _path(template, model.name, method.method)
                paths[path] = {"post": _operation(general, path, model.name, method, request, reply)}
    return {**document, "paths": paths, "components": {**components, "schemas": shared.schemas}}


def _routes(model: DescribedModel, shared: SharedSchemas) -> Iterator[tuple[str, BodySchemas, Schema, Schema]]:
    """Of each: the route of all models, and the contents of a request and a reply."""
    signature = model.signature
    if signature.inputs or signature.outputs:
        tensors = tensor_bodies(signature)
        request, reply = bodies(tensors, shared, "")
        yield KSERVE, tensors, _only_json(request), _only_json(reply)
    for method in body_schemas(signature, model.methods):
        names = re.findall(r"[A-Za-z0-9]+", f"{model.name} {method.method}")
        request, reply = bodies(method, shared, "".join(name[:1].upper() + name[1:] for name in names))
        yield METHOD if method.method else PREDICTIONS, method, request, reply


def _only_json(content: Schema) -> Schema:
    return {JSON_TYPE: content[JSON_TYPE]}


def _path(template: str, model: str, method: str) -> str:
    path = re.sub(r"{model(_name)?}", lambda _: quote(model, safe=""), template)
    return path.replace("{method}", quote(method, safe=""))


def _operation(general: Schema, path: str, name: str, method: BodySchemas, request: Schema, reply: Schema) -> Schema:
    named = [one for one in general.get("parameters", ()) if one["in"] != "path"]
    made = {member: value for member, value in general.items() if member != "parameters"}
    if named:
        made["parameters"] = named
    summary = f"Predict by {name}" if not method.method else f"{method.method} of {name}"
    return made | {
        "summary": method.summary or summary,
        "operationId": operation_id("post", path),
        "requestBody": {"required": True, "content": request},
        "responses": {**general["responses"], "200": {"description": "The reply", "content": reply}},
    }
