"""Reads an inference request of the protocol, from its bytes to the body that a handler sees."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from msx_core.bodies import fault, json_value
from msx_core.elements import TooManyElements
from msx_core.errors import InvalidInput, PredictionError
from msx_core.kserve.fit import check_inputs, is_sizes
from msx_core.kserve.types import BYTES, DATATYPES, GRPC_CONTENTS, ITEM_SIZES, Signature, TensorMeta

NOT_SERVED = "shared_memory_region"
"""Parameters of Triton's that are refused: a client would misread a reply that ignores them."""


@dataclass
class InferRequest:
    """`body` is for the handler; the other members describe the reply that the client wants."""

    body: dict[str, Any]
    id: str | None = None
    wanted: dict[str, bool] = field(default_factory=dict)
    """The outputs that the client named, and whether it wants each as bytes."""
    classes: dict[str, int] = field(default_factory=dict)
    """Outputs for which the client wants this many of the largest values instead."""
    binary: bool = False
    """Whether it wants outputs that it did not name as bytes."""


def read_request(data: memoryview, json_size: str | None, signature: Signature) -> InferRequest:
    """`json_size` is the header of that name, None where the body is JSON and nothing else.

    Raises InvalidInput, which names the tensor, what was expected and what came.
    """
    asked = _asked(data, json_size, signature)
    if signature.enforced and signature.inputs:
        check_inputs(asked.body["inputs"], signature.inputs)
    return asked


def check_prediction(body: Any, signature: Signature) -> None:
    """Reads the body of a plain prediction in the same way, if it has the protocol's shape. Raises InvalidInput."""
    if signature.enforced and signature.inputs and is_request(body):
        check_inputs(inputs_of(body), signature.inputs)


def is_request(body: Any) -> bool:
    """Whether the body has the protocol's shape: a list of tensors with name and data type."""
    inputs = body.get("inputs") if isinstance(body, dict) else None
    return (
        isinstance(inputs, list)
        and len(inputs) > 0
        and all(isinstance(one, dict) and "name" in one and "datatype" in one for one in inputs)
    )


def numpy_tensors() -> Any:
    """Raises PredictionError if NumPy is not installed; JSON does not need it."""
    try:
        from msx_core.kserve import tensors
    except ImportError:
        raise PredictionError(
            501, "Tensors as bytes need NumPy where the worker runs: install it there, or send and ask for JSON."
        ) from None
    return tensors


def count_values(data: Any) -> int:
    """The number of values in nested lists."""
    if not isinstance(data, list):
        return 1
    return sum(map(count_values, data)) if data and isinstance(data[0], list) else len(data)


def _asked(data: memoryview, json_size: str | None, signature: Signature) -> InferRequest:
    if json_size is None:
        return _read(_object(data), memoryview(b""))
    size = _json_size(json_size, len(data))
    if size == 0:
        return InferRequest({"inputs": [_only_input(data, signature)]}, binary=True)
    return _read(_object(data[:size]), data[size:])


def _read(body: dict[str, Any], tail: memoryview) -> InferRequest:
    tensors = list(inputs_of(body))
    for tensor in tensors:
        tail = _fill(tensor, tail)
    if tail:
        raise InvalidInput(f"the body has {len(tail)} bytes more than the binary_data_size of its inputs add up to")
    parameters = _parameters(body, "the request")
    binary = parameters.pop("binary_data_output", False) is True
    wanted, classes = _wanted(body, binary)
    return InferRequest(body, _id(body), wanted, classes, binary)


def _object(data: memoryview) -> dict[str, Any]:
    try:
        body = json_value(data, halves=False)
    except TooManyElements as error:
        raise InvalidInput(f"the request: {error}") from None
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"the request is not JSON: {fault(bytes(data), error)}") from None
    if not isinstance(body, dict):
        raise InvalidInput('the request must be a JSON object such as {"inputs": […]}')
    return body


def _json_size(text: str, most: int) -> int:
    size = int(text) if text.isdecimal() and len(text) < 20 else -1
    if not 0 <= size <= most:
        raise InvalidInput(f"Inference-Header-Content-Length is {text[:40]!r}, and the body has {most} bytes")
    return size


def _id(body: dict[str, Any]) -> str | None:
    given = body.get("id")
    if given is not None and not isinstance(given, str):
        raise InvalidInput(f"'id' must be a text, not {type(given).__name__}")
    return given


def inputs_of(body: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The tensors of a request; their names differ. Raises InvalidInput."""
    inputs, seen = body.get("inputs"), set()
    if not isinstance(inputs, list):
        raise InvalidInput("the request has no list 'inputs'")
    for tensor in inputs:
        name = tensor.get("name") if isinstance(tensor, dict) else None
        if not isinstance(name, str):
            raise InvalidInput("every one of 'inputs' must be an object with a 'name'")
        if name in seen:
            raise InvalidInput(f"input {name!r} is there twice")
        seen.add(name)
        yield tensor


def _fill(tensor: dict[str, Any], tail: memoryview) -> memoryview:
    """Checks a JSON tensor, or takes the data of a binary one from the tail; returns the rest of the tail."""
    what = f"input {tensor['name']!r}"
    _check_datatype(what, tensor.get("datatype"))
    parameters = _parameters(tensor, what)
    size = parameters.pop("binary_data_size", None)
    if "parameters" in tensor and not parameters:
        del tensor["parameters"]
    if size is None:
        _check_json(what, tensor)
        return tail
    if type(size) is not int or size < 0:
        raise InvalidInput(f"{what}: binary_data_size must be a number of bytes, not {size!r}")
    if size > len(tail):
        raise InvalidInput(f"{what}: binary_data_size is {size}, but only {len(tail)} bytes of the body are left")
    read = numpy_tensors().from_contents if tensor.pop(GRPC_CONTENTS, False) else numpy_tensors().from_raw
    tensor["data"] = read(what, tensor["datatype"], _shape(what, tensor.get("shape")), tail[:size])
    return tail[size:]


def _check_datatype(what: str, datatype: Any) -> None:
    if datatype not in DATATYPES:
        raise InvalidInput(f"{what}: datatype {datatype!r} is not one of {', '.join(DATATYPES)}")


def _check_json(what: str, tensor: dict[str, Any]) -> None:
    """TorchServe's clients leave sizes open ([-1]); if all sizes are given, the data must fill the shape."""
    if "data" not in tensor:
        raise InvalidInput(f"{what}: neither 'data' nor the parameter binary_data_size is there")
    shape, data = tensor.get("shape"), tensor["data"]
    if is_sizes(shape) and isinstance(data, list):
        expected, got = math.prod(shape), count_values(data)
        if expected != got:
            raise InvalidInput(f"{what}: shape {shape} takes {expected} values, 'data' has {got}")


def _shape(what: str, shape: Any) -> list[int]:
    if not is_sizes(shape):
        raise InvalidInput(f"{what}: 'shape' must be a list of sizes")
    return shape


def _parameters(owner: dict[str, Any], what: str) -> dict[str, Any]:
    parameters = owner.get("parameters", {})
    if not isinstance(parameters, dict):
        raise InvalidInput(f"{what}: 'parameters' must be an object")
    if NOT_SERVED in parameters:
        raise PredictionError(
            501, f"{what}: shared memory is not served here; send and take the tensor's own values (binary_data)"
        )
    return parameters


def _wanted(body: dict[str, Any], binary: bool) -> tuple[dict[str, bool], dict[str, int]]:
    outputs = body.get("outputs", [])
    if not isinstance(outputs, list):
        raise InvalidInput("'outputs' must be a list")
    wanted: dict[str, bool] = {}
    classes: dict[str, int] = {}
    for output in outputs:
        name = output.get("name") if isinstance(output, dict) else None
        if not isinstance(name, str):
            raise InvalidInput("every one of 'outputs' must be an object with a 'name'")
        parameters = _parameters(output, f"output {name!r}")
        wanted[name] = parameters.get("binary_data", binary) is True
        if "classification" in parameters:
            classes[name] = _class_count(name, parameters["classification"])
    return wanted, classes


def _class_count(name: str, count: Any) -> int:
    if type(count) is not int or count < 1:
        raise InvalidInput(f"output {name!r}: classification must be a number of classes, not {count!r}")
    return count


def _only_input(data: memoryview, signature: Signature) -> dict[str, Any]:
    """The whole body is the tensor of a model with one input; for any other handler, it is one BYTES value."""
    if len(signature.inputs) > 1:
        names = ", ".join(repr(spec.name) for spec in signature.inputs)
        raise InvalidInput(f"Inference-Header-Content-Length: 0 is for models with one input; this one takes {names}")
    spec = signature.inputs[0] if signature.inputs else TensorMeta("input_0", BYTES, (1,))
    if spec.datatype == BYTES:
        value = len(data).to_bytes(4, "little") + bytes(data)
        array = numpy_tensors().from_raw(f"input {spec.name!r}", BYTES, [1], memoryview(value))
        return {"name": spec.name, "datatype": BYTES, "shape": [1], "data": array}
    shape = _filled_shape(spec, len(data))
    array = numpy_tensors().from_raw(f"input {spec.name!r}", spec.datatype, shape, data)
    return {"name": spec.name, "datatype": spec.datatype, "shape": shape, "data": array}


def _filled_shape(spec: TensorMeta, size: int) -> list[int]:
    """The shape with its one open size computed from the number of bytes."""
    known = math.prod(n for n in spec.shape if n >= 0) * ITEM_SIZES.get(spec.datatype, 0)
    open_sizes = sum(n < 0 for n in spec.shape)
    if open_sizes > 1 or not known or (open_sizes and size % known):
        raise InvalidInput(
            f"input {spec.name!r}: {size} bytes do not determine the shape of {spec.datatype} {list(spec.shape)}"
        )
    return [size // known if n < 0 else n for n in spec.shape]
