"""Encodes the outputs of one request in the form that its client expects."""

from typing import Any

import numpy as np

from msx_backend.handlers._arrays import Array, to_npy
from msx_backend.handlers._requests import RequestForm, TensorRequest
from msx_core.kserve.types import INFER
from msx_core.methods import answers_packed
from msx_sdk import Context, InvalidInput, PredictionError

JSON = "application/json"
NPY = "application/x-npy"
_DATATYPES = {"float16": "FP16", "float32": "FP32", "float64": "FP64"}

Outputs = dict[str, Array]


def encode_reply(context: Context, idx: int, request: TensorRequest, outputs: Outputs) -> Any:
    """Encode a reply: arrays for another stage of the model; for a client npy if its Accept header asks for it, or the
    request was one and Accept leaves it open; else JSON."""
    if answers_packed(context.operation(idx)):
        return _arrays(request, outputs)
    if context.operation(idx) != INFER and wants_npy(_accept(context, idx), request.form):
        context.set_response_content_type(idx, NPY)
        return to_npy(_only(request, outputs))
    context.set_response_content_type(idx, JSON)
    return _json(context, request, outputs)


def _arrays(request: TensorRequest, outputs: Outputs) -> Any:
    arrays = {name: _shown(request, array) for name, array in outputs.items()}
    return arrays if request.form is RequestForm.NAMED or len(arrays) > 1 else next(iter(arrays.values()))


def _accept(context: Context, idx: int) -> str | None:
    value = context.get_request_header(idx, "Accept")
    return value if isinstance(value, str) else None  # a form field may have the same name


def wants_npy(accept: str | None, form: RequestForm) -> bool:
    """The first type of the header that can be served decides; quality values are not weighed."""
    for item in (accept or "*/*").split(","):
        kind = item.partition(";")[0].strip().lower()
        if kind in (NPY, "application/octet-stream"):
            return True
        if kind in (JSON, "application/*"):
            return False
    return form is RequestForm.BINARY


def _json(context: Context, request: TensorRequest, outputs: Outputs) -> Any:
    if request.form is RequestForm.KSERVE:
        return _kserve(context, request, outputs)
    values = {name: _shown(request, array).tolist() for name, array in outputs.items()}
    if request.form is RequestForm.INSTANCES:
        return {"predictions": _predictions(values)}
    return values if request.form is RequestForm.NAMED or len(values) > 1 else next(iter(values.values()))


def _predictions(values: dict[str, Any]) -> Any:
    """TensorFlow Serving's row format: the values themselves if there is one output, else a dict per instance."""
    if len(values) == 1:
        return next(iter(values.values()))
    return [dict(zip(values, row, strict=True)) for row in zip(*values.values(), strict=True)]


def _kserve(context: Context, request: TensorRequest, outputs: Outputs) -> dict[str, Any]:
    if unknown := [name for name in request.wanted if name not in outputs]:
        raise InvalidInput(f"unknown output {', '.join(map(repr, unknown))}; this model gives {', '.join(outputs)}")
    chosen = {name: outputs[name] for name in request.wanted} or outputs
    reply: dict[str, Any] = {"model_name": context.model_name, "model_version": context.model_version}
    if request.id is not None:
        reply["id"] = request.id
    reply["outputs"] = [_tensor(name, _shown(request, array)) for name, array in chosen.items()]
    return reply


def _tensor(name: str, array: Array) -> dict[str, Any]:
    datatype = _DATATYPES.get(array.dtype.name, array.dtype.name.upper())
    return {"name": name, "datatype": datatype, "shape": list(array.shape) or [1], "data": array.ravel()}


def _only(request: TensorRequest, outputs: Outputs) -> Array:
    if len(outputs) != 1:
        raise PredictionError(406, f"npy holds one array, but this model gives {', '.join(outputs)}; accept {JSON}")
    return _shown(request, next(iter(outputs.values())))


def _shown(request: TensorRequest, array: Array) -> Array:
    """A row that came without the batch axis is returned without it."""
    return np.asarray(array[0]) if request.single else array
