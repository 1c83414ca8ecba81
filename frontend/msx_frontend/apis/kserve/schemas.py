"""JSON schemas of requests and replies of the Open Inference Protocol, of any model."""

from collections.abc import Mapping
from typing import Any

Schema = Mapping[str, Any]

_TEXT: Schema = {"type": "string"}
_FLAG: Schema = {"type": "boolean"}
_PARAMETERS: Schema = {"type": "object"}
_SHAPE: Schema = {"type": "array", "items": {"type": "integer"}}


def _object(members: Schema, *required: str) -> Schema:
    return {"type": "object", "required": list(required or members), "properties": members}


def _list(items: Schema) -> Schema:
    return {"type": "array", "items": items}


_META = _object({"name": _TEXT, "datatype": _TEXT, "shape": _SHAPE})
_TENSOR = _object(
    {"name": _TEXT, "datatype": _TEXT, "shape": _SHAPE, "data": _list({}), "parameters": _PARAMETERS},
    "name",
    "datatype",
    "shape",
)
_WANTED = _object({"name": _TEXT, "parameters": _PARAMETERS}, "name")

SERVER = _object({"name": _TEXT, "version": _TEXT, "extensions": _list(_TEXT)})
LIVE = _object({"live": _FLAG})
READY = _object({"ready": _FLAG, "live": _FLAG})
MODELS = _object({"models": _list(_TEXT)})
MODEL = _object(
    {"name": _TEXT, "versions": _list(_TEXT), "platform": _TEXT, "inputs": _list(_META), "outputs": _list(_META)}
)
MODEL_READY = _object({"name": _TEXT, "ready": _FLAG})
INFER_REQUEST = _object(
    {"id": _TEXT, "parameters": _PARAMETERS, "inputs": _list(_TENSOR), "outputs": _list(_WANTED)}, "inputs"
)
INFER_REPLY = _object(
    {"id": _TEXT, "model_name": _TEXT, "model_version": _TEXT, "parameters": _PARAMETERS, "outputs": _list(_TENSOR)},
    "outputs",
)
INFER_EXAMPLE = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 2], "data": [0.5, 1.5]}]}
STATISTICS = _object({"model_stats": _list({"type": "object"})})
CONFIG: Schema = {"type": "object"}
"""As Triton's ModelConfig is as JSON."""
INDEX_REQUEST: Schema = {"type": "object", "properties": {"ready": _FLAG}}
INDEX = _list(_object({"name": _TEXT, "version": _TEXT, "state": _TEXT, "reason": _TEXT}))
LOAD = _object({"name": _TEXT, "load": _FLAG})
UNLOAD = _object({"name": _TEXT, "unload": _FLAG})
