"""Paths of single models, whose tensors or methods are known: the handler announces them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple
from urllib.parse import quote

from msx_frontend.apis.openapi.operations import operation_id
from msx_frontend.apis.openapi.schemas import ANYTHING, JSON_TYPE, Schema
from msx_sdk._internal.methods import MethodInfo, Methods
from msx_sdk.kserve import Signature, TensorMeta

KSERVE, PREDICTIONS = "/v2/models/{model}/infer", "/predictions/{model_name}"
METHOD = "/predictions/{model_name}:{method}"
"""The routes of all models of which these are."""

_VALUES: dict[str, list[str]] = {"BOOL": ["boolean"], "BYTES": ["string"]}
_NUMBERS = ["number"]
_PARAMETERS: Schema = {"type": "object"}


class SignedModel(NamedTuple):
    name: str
    signature: Signature
    methods: Methods = ()


def with_models(document: Schema, models: Iterable[SignedModel]) -> Schema:
    """The document with paths of these models; what the routes of all models have (key, errors, tag) they have, too."""
    paths = dict(document["paths"])
    for model in models:
        for template in (KSERVE, PREDICTIONS) if model.signature.inputs or model.signature.outputs else ():
            if general := document["paths"].get(template, {}).get("post"):
                path = template.partition("{")[0] + quote(model.name, safe="") + template.partition("}")[2]
                paths[path] = {"post": _operation(general, path, model.name, model.signature)}
        if general := document["paths"].get(METHOD, {}).get("post"):
            paths.update((path, {"post": made}) for path, made in _methods(general, model))
    return {**document, "paths": paths}


def _methods(general: Schema, model: SignedModel) -> Iterator[tuple[str, Schema]]:
    """Path and operation of each."""
    for method in model.methods:
        if method.name:
            path = f"/predictions/{quote(model.name, safe='')}:{quote(method.name, safe='')}"
            summary = method.summary or f"Call {method.name} of {model.name}"
            made = {member: value for member, value in general.items() if member != "parameters"}
            yield path, made | {"summary": summary, "operationId": operation_id("post", path), **_schemas(made, method)}


def _schemas(general: Schema, method: MethodInfo) -> Schema:
    """Of the bodies that the method announces."""
    made: Schema = {}
    if method.request_schema is not None:
        made["requestBody"] = {"required": True, "content": {JSON_TYPE: {"schema": method.request_schema}}}
    if method.reply_schema is not None:
        content = {JSON_TYPE: {"schema": method.reply_schema}}
        made["responses"] = {**general["responses"], "200": {"description": "The reply", "content": content}}
    return made


def _operation(general: Schema, path: str, name: str, signature: Signature) -> Schema:
    is_kserve = path.startswith("/v2/")
    others: Schema = {} if is_kserve else {"*/*": {"schema": ANYTHING}}
    made = {member: value for member, value in general.items() if member != "parameters"}
    request = {JSON_TYPE: {"schema": request_schema(signature)}, **others}
    reply = {JSON_TYPE: {"schema": response_schema(signature)}, **others}
    return made | {
        "summary": f"Predict by {name}",
        "operationId": operation_id("post", path),
        "requestBody": {"required": True, "content": request},
        "responses": {**general["responses"], "200": {"description": "The reply", "content": reply}},
    }


def request_schema(signature: Signature) -> Schema:
    names = [tensor.name for tensor in signature.outputs]
    wanted: Schema = {"type": "string", "enum": names} if names else {"type": "string"}
    output = _object({"name": wanted, "parameters": _PARAMETERS}, required=["name"])
    members = {
        "id": {"type": "string"},
        "parameters": _PARAMETERS,
        "inputs": _tensors(signature.inputs, exactly=signature.enforced),
        "outputs": {"type": "array", "items": output},
    }
    return _object(members, required=["inputs"])


def response_schema(signature: Signature) -> Schema:
    members = {
        "model_name": {"type": "string"},
        "model_version": {"type": "string"},
        "id": {"type": "string"},
        "parameters": _PARAMETERS,
        "outputs": _tensors(signature.outputs, exactly=False),
    }
    return _object(members, required=["outputs"])


def _tensors(tensors: tuple[TensorMeta, ...], *, exactly: bool) -> Schema:
    """In any order. `exactly`: each of them once."""
    made: Schema = {"type": "array", "items": {"anyOf": [_tensor(one) for one in tensors]} if tensors else _ANY_TENSOR}
    return {**made, "minItems": len(tensors), "maxItems": len(tensors)} if exactly and tensors else made


def _tensor(tensor: TensorMeta) -> Schema:
    sizes: list[Schema] = [{"type": "integer", "minimum": 0} if size < 0 else {"const": size} for size in tensor.shape]
    shape: Schema = {"type": "array", "minItems": len(sizes), "maxItems": len(sizes)}
    if sizes:
        shape["prefixItems"] = sizes
    kinds = _VALUES.get(tensor.datatype, _NUMBERS)
    members = {
        "name": {"const": tensor.name},
        "datatype": {"const": tensor.datatype},
        "shape": shape,
        "data": {
            "type": "array",
            "items": {"type": [*kinds, "array"]},
            "description": "Flat or nested, in row-major order",
        },
        "parameters": _PARAMETERS,
    }
    return _object(members, required=["name", "datatype", "shape"])


def _object(members: Schema, required: list[str]) -> Schema:
    return {"type": "object", "required": required, "properties": members}


_ANY_TENSOR = _object(
    {
        "name": {"type": "string"},
        "datatype": {"type": "string"},
        "shape": {"type": "array", "items": {"type": "integer"}},
    },
    required=["name", "datatype", "shape"],
)
