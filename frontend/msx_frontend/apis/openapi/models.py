"""Paths of single models, of whose bodies something is known: their tensors, or their handlers' types."""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple
from urllib.parse import quote

from msx_core.kserve.types import Signature
from msx_core.methods import Methods
from msx_frontend.apis.openapi.operations import operation_id
from msx_frontend.apis.openapi.schemas import Schema
from msx_frontend.models.schemas.body import JSON_TYPE, BodySchemas, bodies, body_schemas, tensor_bodies
from msx_frontend.models.schemas.shared import SharedSchemas

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
        for template, prefix, method, types in _routes(model):
            if general := document["paths"].get(template, {}).get("post"):
                contents = bodies(method, shared, prefix)
                path = _path(template, model.name, method.method)
                paths[path] = {"post": _operation(general, path, model.name, method, *_chosen(contents, types))}
    return {**document, "paths": paths, "components": {**components, "schemas": shared.schemas}}


def _routes(model: DescribedModel) -> Iterator[tuple[str, str, BodySchemas, tuple[str, ...]]]:
    """Yield for each route of the model: the same route of all models, how names of its components begin, its bodies,
    and their content types; none for all that they have."""
    signature = model.signature
    if signature.inputs or signature.outputs:
        yield KSERVE, "", tensor_bodies(signature), (JSON_TYPE,)
    for method in body_schemas(signature, model.methods):
        names = re.findall(r"[A-Za-z0-9]+", f"{model.name} {method.method}")
        prefix = "".join(name[:1].upper() + name[1:] for name in names)
        yield METHOD if method.method else PREDICTIONS, prefix, method, ()


def _chosen(contents: tuple[Schema, Schema], types: tuple[str, ...]) -> list[Schema]:
    return [{name: content[name] for name in types or content} for content in contents]


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
