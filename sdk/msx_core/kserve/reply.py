"""Makes the protocol's reply of what a handler returned."""

import math
from dataclasses import dataclass
from typing import Any

import msgspec

from msx_core.errors import InvalidInput, PredictionError
from msx_core.kserve.classification import UNNAMED, ClassLabels, largest
from msx_core.kserve.message import join
from msx_core.kserve.request import InferRequest, numpy_tensors
from msx_core.kserve.types import BYTES, DATATYPES, Signature
from msx_core.results import encode

BAD_OUTPUT = 500


@dataclass
class OutputTensor:
    """`data` is an array of the data type's NumPy type, or a flat list of values that JSON can hold."""

    name: str
    datatype: str
    shape: list[int]
    data: Any


def encode_reply(
    value: Any, asked: InferRequest, model: tuple[str, str], signature: Signature, labels: ClassLabels = UNNAMED
) -> bytes:
    """The message for the frontend. `model` is its name and version. Raises PredictionError."""
    head: dict[str, Any] = {"model_name": model[0], "model_version": model[1]}
    own = _reply_object(value)
    if asked.id is not None or (own and isinstance(own.get("id"), str)):
        head["id"] = own["id"] if asked.id is None and own else asked.id
    if own and own.get("parameters"):
        head["parameters"] = own["parameters"]
    outputs = _outputs_of(own) if own else _outputs(value, asked, signature)
    if asked.classes:
        outputs = _classified(outputs, asked, labels)
    tensors: list[bytes] = []
    head["outputs"] = [_entry(output, binary, tensors) for output, binary in _chosen(outputs, asked)]
    return join(head, tensors)


def _classified(outputs: list[OutputTensor], asked: InferRequest, labels: ClassLabels) -> list[OutputTensor]:
    made = []
    for output in outputs:
        if count := asked.classes.get(output.name):
            array = _array(output).reshape(output.shape)
            found = largest(f"output {output.name!r}", array, count, labels)
            output = OutputTensor(output.name, BYTES, list(found.shape), found)
        made.append(output)
    return made


def _chosen(outputs: list[OutputTensor], asked: InferRequest) -> list[tuple[OutputTensor, bool]]:
    if not asked.wanted:
        return [(output, asked.binary) for output in outputs]
    there = {output.name: output for output in outputs}
    if unknown := [name for name in asked.wanted if name not in there]:
        given = ", ".join(map(repr, there)) or "none"
        raise InvalidInput(f"unknown output {', '.join(map(repr, unknown))}; this model gives {given}")
    return [(there[name], binary) for name, binary in asked.wanted.items()]


def _entry(output: OutputTensor, binary: bool, tensors: list[bytes]) -> dict[str, Any]:
    entry: dict[str, Any] = {"name": output.name, "datatype": output.datatype, "shape": output.shape or [1]}
    if binary:
        tensors.append(numpy_tensors().to_raw(_array(output), output.datatype))
        entry["parameters"] = {"binary_data_size": len(tensors[-1])}
    else:
        entry["data"] = _json(output)
    return entry


def _json(output: OutputTensor) -> list[Any]:
    data = output.data if isinstance(output.data, list) else output.data.ravel().tolist()
    return [_text(output.name, item) for item in data] if output.datatype == BYTES else data


def _text(name: str, value: Any) -> Any:
    try:
        return value.decode() if isinstance(value, bytes) else value
    except UnicodeDecodeError:
        raise InvalidInput(f"output {name!r} has bytes that JSON cannot carry: ask for it with binary_data") from None


def _array(output: OutputTensor) -> Any:
    if isinstance(output.data, list):
        return _cast(output.name, numpy_tensors().np.array(output.data, object), output.datatype)
    return output.data


# -- from what a handler returned --


def _reply_object(value: Any) -> dict[str, Any] | None:
    """The protocol's own reply, as an object, or as text or bytes of JSON, which TorchServe's envelope and its users
    return."""
    if isinstance(value, (bytes, bytearray, str)) and value[:1] in (b"{", "{"):
        try:
            value = msgspec.json.decode(value)
        except (msgspec.DecodeError, RecursionError):
            return None
    if not isinstance(value, dict) or not isinstance(value.get("outputs"), list):
        return None
    return value if all(isinstance(one, dict) and "name" in one and "data" in one for one in value["outputs"]) else None


def _outputs_of(reply: dict[str, Any]) -> list[OutputTensor]:
    return [_declared(str(one["name"]), one) for one in reply["outputs"]]


def _outputs(value: Any, asked: InferRequest, signature: Signature) -> list[OutputTensor]:
    if isinstance(value, dict) and value and all(_is_tensor(item) for item in value.values()):
        return [_natural(str(name), item) for name, item in value.items()]
    return [_natural(_only_name(asked, signature), value)]


def _only_name(asked: InferRequest, signature: Signature) -> str:
    if len(asked.wanted) == 1:
        return next(iter(asked.wanted))
    return signature.outputs[0].name if len(signature.outputs) == 1 else "output_0"


def _declared(name: str, one: dict[str, Any]) -> OutputTensor:
    datatype, shape, data = one.get("datatype"), one.get("shape"), _plain(one["data"])
    if isinstance(data, list) and isinstance(shape, list) and datatype in DATATYPES:
        values = _flat(data)
        _check_size(name, shape, len(values))
        return OutputTensor(name, datatype, shape, values)
    output = _natural(name, data)
    if datatype in DATATYPES and datatype != output.datatype:
        output = OutputTensor(name, datatype, output.shape, _cast(name, output.data, datatype))
    if isinstance(shape, list):
        _check_size(name, shape, output.data.size)
        output.shape = shape
    return output


def _natural(name: str, value: Any) -> OutputTensor:
    """Makes a tensor with the shape and data type of the value itself; a value that is not a tensor becomes BYTES that
    hold its JSON."""
    np, value = numpy_tensors().np, _plain(value)
    array = None
    if isinstance(value, (bytes, bytearray)):
        array = _one_value(bytes(value))
    elif _is_tensor(value):
        array = _rectangular(np, value)
    if array is None:
        array = _one_value(bytes(encode(value)))
    datatype = numpy_tensors().datatype_of(array)
    if datatype is None:
        raise PredictionError(BAD_OUTPUT, f"output {name!r}: the protocol has no data type for {array.dtype}")
    return OutputTensor(name, datatype, list(array.shape), _cast(name, array, datatype))


def _one_value(value: bytes) -> Any:
    array = numpy_tensors().np.empty(1, object)
    array[0] = value
    return array


def _rectangular(np: Any, value: Any) -> Any:
    """None if the value is not a list, or an entry is neither a number nor a text."""
    try:
        array = np.asarray(value)
    except (ValueError, OverflowError):
        return None
    if array.dtype.kind == "O" and not all(isinstance(item, (bytes, str)) for item in array.ravel().tolist()):
        return None
    return array if array.ndim else array.reshape(1)


def _plain(value: Any) -> Any:
    """A MindSpore or torch tensor as an array."""
    if hasattr(value, "asnumpy"):
        return value.asnumpy()
    return value.detach().cpu().numpy() if hasattr(value, "detach") else value


def _is_tensor(value: Any) -> bool:
    return isinstance(value, (list, tuple, bool, int, float, str)) or hasattr(_plain(value), "__array__")


def _cast(name: str, array: Any, datatype: str) -> Any:
    tensors = numpy_tensors()
    try:
        if datatype == BYTES:
            flat = [tensors.as_bytes(item) for item in array.ravel().tolist()]
            made = tensors.np.empty(len(flat), object)
            made[:] = flat
            return made.reshape(array.shape)
        return array.astype(tensors.DTYPES[datatype], copy=False)
    except (TypeError, ValueError, OverflowError) as error:
        raise PredictionError(BAD_OUTPUT, f"output {name!r}: its data is not {datatype}: {error}") from None


def _flat(data: list[Any]) -> list[Any]:
    if not data or not isinstance(data[0], list):
        return data
    return [value for row in data for value in (_flat(row) if isinstance(row, list) else [row])]


def _check_size(name: str, shape: list[Any], size: int) -> None:
    sizes = [n for n in shape if type(n) is int and n >= 0]
    if len(sizes) != len(shape) or math.prod(sizes) != size:
        raise PredictionError(BAD_OUTPUT, f"output {name!r}: shape {shape} does not hold the {size} values of its data")
