"""JSON schemas of requests and replies of the Open Inference Protocol, for models whose tensors are known."""

import math

from msx_core.kserve.types import Signature, TensorMeta
from msx_frontend.models.schemas.shared import Schema
from msx_frontend.models.schemas.tensor_examples import example_shape, example_value

_VALUES = {"BOOL": "boolean", "BYTES": "string"}
_PARAMETERS: Schema = {"type": "object"}


def request_schema(signature: Signature) -> Schema:
    names = [tensor.name for tensor in signature.outputs]
    wanted: Schema = {"type": "string", "enum": names} if names else {"type": "string"}
    output = _object({"name": wanted, "parameters": _PARAMETERS}, required=["name"])
    members = {
        "id": {"type": "string"},
        "parameters": _PARAMETERS,
        "inputs": _tensors(signature.inputs, exactly=signature.enforced, nested=True),
        "outputs": {"type": "array", "items": output},
    }
    return _object(members, required=["inputs"])


MOST_EXAMPLE_VALUES = 256
"""A larger tensor is not an example that helps anybody."""


def request_example(signature: Signature) -> Schema | None:
    """None where a tensor would have too many values."""
    tensors = [_tensor_example(one) for one in signature.inputs]
    if not tensors or any(len(one["data"]) > MOST_EXAMPLE_VALUES for one in tensors):
        return None
    return {"inputs": tensors}


def _tensor_example(tensor: TensorMeta) -> Schema:
    shape = example_shape(tensor.shape)
    values = [example_value(tensor.name, tensor.datatype)] * min(math.prod(shape), MOST_EXAMPLE_VALUES + 1)
    return {"name": tensor.name, "datatype": tensor.datatype, "shape": shape, "data": values}


def response_schema(signature: Signature) -> Schema:
    members = {
        "model_name": {"type": "string"},
        "model_version": {"type": "string"},
        "id": {"type": "string"},
        "parameters": _PARAMETERS,
        "outputs": _tensors(signature.outputs),
    }
    return _object(members, required=["outputs"])


def _tensors(tensors: tuple[TensorMeta, ...], *, exactly: bool = False, nested: bool = False) -> Schema:
    """Schema of tensors in any order. `exactly`: each of them once; `nested`: values may be lists of rows."""
    known = [_tensor(one, nested) for one in tensors]
    made: Schema = {
        "type": "array",
        "items": ({"anyOf": known} if len(known) > 1 else known[0]) if known else _ANY_TENSOR,
    }
    return {**made, "minItems": len(tensors), "maxItems": len(tensors)} if exactly and tensors else made


def _tensor(tensor: TensorMeta, nested: bool) -> Schema:
    sizes: list[Schema] = [{"type": "integer", "minimum": 0} if size < 0 else {"const": size} for size in tensor.shape]
    shape: Schema = {"type": "array", "minItems": len(sizes), "maxItems": len(sizes)}
    if sizes:
        shape["prefixItems"] = sizes
    value: Schema = {"type": _VALUES.get(tensor.datatype, "number")}
    if nested:  # not a list of types, which generators of clients do not know
        value = {"anyOf": [value, {"type": "array", "items": {}}]}
    members = {
        "name": {"const": tensor.name},
        "datatype": {"const": tensor.datatype},
        "shape": shape,
        "data": {
            "type": "array",
            "items": value,
            "description": f"Flat{' or nested' * nested}, in row-major order",
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
