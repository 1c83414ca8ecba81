"""A request for tensors, in any of the forms that clients use, as one array per input of the model."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from msx_backend.handlers._arrays import NPY_MAGIC, Array, check_shape, lacks_axis, to_array
from msx_sdk import InvalidInput
from msx_sdk.mindir import DYNAMIC_RANK, TensorSpec


class Form(Enum):
    """How the client asked, and so how it is answered."""

    KSERVE = "the Open Inference Protocol: named tensors with shape, datatype and data"
    INSTANCES = "instances, answered by predictions"
    NAMED = "inputs by name, answered by outputs by name"
    PLAIN = "the one input's values, answered by the one output's"
    BINARY = "an npy file, answered by one"


@dataclass
class TensorRequest:
    """`arrays` is in the order of the model's inputs. `single` came without the batch axis."""

    arrays: list[Array]
    form: Form
    single: bool = False
    id: str | None = None
    wanted: list[str] = field(default_factory=list)

    @property
    def rows(self) -> int:
        return int(self.arrays[0].shape[0])


class RequestParser:
    """Reads requests for a model with these inputs; `batched` says that axis 0 counts independent rows."""

    def __init__(self, inputs: list[TensorSpec], batched: bool) -> None:
        self._inputs, self._batched = inputs, batched
        self._names = {spec.name for spec in inputs}

    def parse(self, data: Mapping[str, Any]) -> TensorRequest:
        """`data` is one item of a handler's batch. Raises InvalidInput."""
        if len(data) == 1 and not data.keys() & self._names:
            return self._body(next(iter(data.values())))
        return self._named(data, Form.NAMED)

    def _body(self, body: Any) -> TensorRequest:
        if isinstance(body, str):
            body = self._text(body)
        if isinstance(body, dict):
            return self._object(body)
        binary = isinstance(body, (bytes, bytearray)) and body.startswith(NPY_MAGIC)
        return self._only(body, Form.BINARY if binary else Form.PLAIN)

    def _text(self, body: str) -> Any:
        try:
            return json.loads(body)
        except ValueError:
            raise InvalidInput(f"the body is neither JSON nor an npy file; {self._expected()}") from None

    def _object(self, body: dict[str, Any]) -> TensorRequest:
        if isinstance(body.get("inputs"), list) and ("inputs" not in self._names or _are_tensors(body["inputs"])):
            return self._kserve(body)
        if "instances" in body and "instances" not in self._names:
            return self._instances(body["instances"])
        return self._named(body, Form.NAMED)

    def _named(self, values: Mapping[str, Any], form: Form) -> TensorRequest:
        self._check_names(values.keys())
        return self._request([to_array(values[spec.name], spec) for spec in self._inputs], form)

    def _only(self, value: Any, form: Form) -> TensorRequest:
        if len(self._inputs) != 1:
            raise InvalidInput(f"the inputs must be named; {self._expected()}")
        return self._request([to_array(value, self._inputs[0])], form)

    def _instances(self, instances: Any) -> TensorRequest:
        if not isinstance(instances, list) or not instances:
            raise InvalidInput("'instances' must be a list with at least one instance")
        if not all(isinstance(instance, dict) for instance in instances):
            return self._only(instances, Form.INSTANCES)
        names = set(instances[0])
        if any(instance.keys() != names for instance in instances):
            raise InvalidInput("every one of 'instances' must have the same inputs")
        return self._named({name: [instance[name] for instance in instances] for name in names}, Form.INSTANCES)

    def _kserve(self, body: dict[str, Any]) -> TensorRequest:
        given = {str(tensor.get("name")): tensor for tensor in body["inputs"] if isinstance(tensor, dict)}
        self._check_names(given.keys())
        request = self._request([_kserve_array(given[spec.name], spec) for spec in self._inputs], Form.KSERVE)
        request.id = body.get("id")
        outputs = body.get("outputs")
        request.wanted = [str(out.get("name")) for out in outputs] if isinstance(outputs, list) else []
        return request

    def _request(self, arrays: list[Array], form: Form) -> TensorRequest:
        single = self._batched and form is not Form.INSTANCES and lacks_axis(arrays[0], self._inputs[0])
        arrays = [array[None] for array in arrays] if single else arrays
        for array, spec in zip(arrays, self._inputs, strict=True):
            check_shape(array, spec)
        if self._batched:
            self._check_rows(arrays)
        return TensorRequest(arrays, form, single)

    def _check_rows(self, arrays: list[Array]) -> None:
        if any(array.ndim == 0 or array.shape[0] == 0 for array in arrays):
            raise InvalidInput(f"the request has no rows; {self._expected()}")
        if len({array.shape[0] for array in arrays}) != 1:
            sizes = ", ".join(f"{s.name} {list(a.shape)}" for s, a in zip(self._inputs, arrays, strict=True))
            raise InvalidInput(f"the inputs of one request must have the same number of rows: {sizes}")

    def _check_names(self, given: Any) -> None:
        missing, unknown = sorted(self._names - given), sorted(given - self._names)
        if missing or unknown:
            faults = [f"{what} {', '.join(map(repr, names))}" for what, names in _faults(missing, unknown)]
            raise InvalidInput(f"{' and '.join(faults)}; {self._expected()}")

    def _expected(self) -> str:
        return "this model takes " + ", ".join(map(_brief, self._inputs))


def _are_tensors(inputs: list[Any]) -> bool:
    """Of a model whose own input is called `inputs`."""
    return bool(inputs) and all(isinstance(item, dict) and "datatype" in item for item in inputs)


def _faults(missing: list[str], unknown: list[str]) -> list[tuple[str, list[str]]]:
    return [fault for fault in (("missing input", missing), ("unknown input", unknown)) if fault[1]]


def _brief(spec: TensorSpec) -> str:
    return (
        f"{spec.name} ({spec.dtype})"
        if spec.shape == DYNAMIC_RANK
        else f"{spec.name} ({spec.dtype} {list(spec.shape)})"
    )


def _kserve_array(tensor: dict[str, Any], spec: TensorSpec) -> Array:
    """`data` may be flat or nested, as the protocol allows."""
    datatype, shape = tensor.get("datatype"), tensor.get("shape")
    if datatype != spec.kserve_datatype:
        raise InvalidInput(f"input {spec.name!r}: datatype {datatype!r}, but the model takes {spec.kserve_datatype}")
    if not isinstance(shape, list) or not all(type(size) is int and size >= 0 for size in shape):
        raise InvalidInput(f"input {spec.name!r}: 'shape' must be a list of sizes")
    array = to_array(tensor.get("data"), spec)
    try:
        return array.reshape(shape)
    except ValueError:
        raise InvalidInput(f"input {spec.name!r}: {array.size} values do not fill shape {shape}") from None
