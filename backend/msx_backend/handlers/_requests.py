"""Reads a request for tensors, in any form that clients use, as one array for each input of the model."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from msx_backend.handlers._arrays import NPY_MAGIC, Array, lacks_axis, to_array
from msx_backend.handlers._fields import meaning, unsupported
from msx_core.bodies import media_type
from msx_core.form_fields import FORM
from msx_core.kserve.fit import check_inputs, check_names, check_shape
from msx_core.kserve.request import inputs_of
from msx_core.mindir import DYNAMIC_RANK, TensorSpec
from msx_sdk import InvalidInput
from msx_sdk.kserve import TensorMeta

TypeOf = Callable[[str], str | None]

_WHOLE = {"body", "data"}
"""Fields that hold a whole request, unless an input has that name; TorchServe's examples use the second one."""


class RequestForm(Enum):
    """The form of a request, which decides the form of its reply."""

    KSERVE = "the Open Inference Protocol: named tensors with shape, datatype and data"
    INSTANCES = "instances, answered by predictions"
    NAMED = "inputs by name, answered by outputs by name"
    PLAIN = "the one input's values, answered by the one output's"
    BINARY = "an npy file, answered by one"


@dataclass
class TensorRequest:
    """`arrays` have the order of the model's inputs. `single`: the request came without the batch axis."""

    arrays: list[Array]
    form: RequestForm
    single: bool = False
    id: str | None = None
    wanted: list[str] = field(default_factory=list)

    @property
    def rows(self) -> int:
        return int(self.arrays[0].shape[0])


def _untyped(field: str) -> str | None:
    """Fields whose client could not state a type."""
    return None


def _text(field: str) -> str:
    """Fields whose values are texts."""
    return ""


class RequestParser:
    """Reads requests for a model with these inputs; `batched`: axis 0 counts independent rows."""

    def __init__(self, inputs: list[TensorSpec], batched: bool) -> None:
        self._inputs, self._batched = inputs, batched
        self._names = {spec.name for spec in inputs}
        self._only_spec = inputs[0] if len(inputs) == 1 else None
        self._metas = [TensorMeta(spec.name, spec.kserve_datatype or spec.dtype, spec.shape) for spec in inputs]

    def parse(
        self, data: Mapping[str, Any], stated: TypeOf = _untyped, request_type: str | None = None
    ) -> TensorRequest:
        """`data` is one item of a handler's batch, `stated` gives a field's content type as `Context.field_type` does,
        `request_type` is that of the whole request. Raises InvalidInput, or PredictionError with 415.
        """
        form = request_type is not None and media_type(request_type) == FORM
        stated = _text if form else stated
        if data.keys() & self._names:
            given = {name: value for name, value in data.items() if name in self._names or _is_input(name, value)}
            return self._named(given, RequestForm.NAMED, stated)
        if form and not data.keys() & _WHOLE:
            raise unsupported(FORM)
        name = "body" if "body" in data else next(iter(data)) if len(data) == 1 else None
        if name is None:
            return self._named(data, RequestForm.NAMED, stated)
        return self._body(meaning(name, data[name], stated(name), self._only_spec))

    def _body(self, body: Any) -> TensorRequest:
        if isinstance(body, dict):
            return self._object(body)
        return self._only(
            body, RequestForm.BINARY if isinstance(body, bytes) and body.startswith(NPY_MAGIC) else RequestForm.PLAIN
        )

    def _object(self, body: dict[str, Any]) -> TensorRequest:
        if isinstance(body.get("inputs"), list) and ("inputs" not in self._names or _are_tensors(body["inputs"])):
            return self._kserve(body)
        if "instances" in body and "instances" not in self._names:
            return self._instances(body["instances"])
        return self._named(body, RequestForm.NAMED)

    def _named(self, values: Mapping[str, Any], form: RequestForm, stated: TypeOf = _untyped) -> TensorRequest:
        self._check_names(values.keys())
        given = {spec.name: meaning(spec.name, values[spec.name], stated(spec.name), spec) for spec in self._inputs}
        return self._request([to_array(given[spec.name], spec) for spec in self._inputs], form)

    def _only(self, value: Any, form: RequestForm) -> TensorRequest:
        if len(self._inputs) != 1:
            raise InvalidInput(f"the inputs must be named; {self._expected()}")
        return self._request([to_array(value, self._inputs[0])], form)

    def _instances(self, instances: Any) -> TensorRequest:
        if not isinstance(instances, list) or not instances:
            raise InvalidInput("'instances' must be a list with at least one instance")
        if not all(isinstance(instance, dict) for instance in instances):
            return self._only(instances, RequestForm.INSTANCES)
        names = set(instances[0])
        if any(instance.keys() != names for instance in instances):
            raise InvalidInput("every one of 'instances' must have the same inputs")
        return self._named({name: [instance[name] for instance in instances] for name in names}, RequestForm.INSTANCES)

    def _kserve(self, body: dict[str, Any]) -> TensorRequest:
        given = {tensor["name"]: tensor for tensor in inputs_of(body)}
        check_inputs(given.values(), self._metas, lone_rows=self._batched)
        request = self._request([_kserve_array(given[spec.name], spec) for spec in self._inputs], RequestForm.KSERVE)
        request.id = body.get("id")
        outputs = body.get("outputs")
        request.wanted = [str(out.get("name")) for out in outputs] if isinstance(outputs, list) else []
        return request

    def _request(self, arrays: list[Array], form: RequestForm) -> TensorRequest:
        single = self._batched and form is not RequestForm.INSTANCES and lacks_axis(arrays[0], self._inputs[0])
        arrays = [array[None] for array in arrays] if single else arrays
        for array, spec in zip(arrays, self._inputs, strict=True):
            check_shape(f"input {spec.name!r}", array.shape, spec.shape)
        if self._batched:
            self._check_rows(arrays)
        return TensorRequest(arrays, form, single)

    def _check_rows(self, arrays: list[Array]) -> None:
        if any(array.ndim == 0 or array.shape[0] == 0 for array in arrays):
            raise InvalidInput(f"the request has no rows; {self._expected()}")
        if len({array.shape[0] for array in arrays}) != 1:
            sizes = ", ".join(f"{s.name} {list(a.shape)}" for s, a in zip(self._inputs, arrays, strict=True))
            raise InvalidInput(f"the inputs of one request must have the same number of rows: {sizes}")

    def _check_names(self, given: Collection[str]) -> None:
        check_names(given, self._names, ", ".join(map(_brief, self._inputs)))

    def _expected(self) -> str:
        return "this model takes " + ", ".join(map(_brief, self._inputs))


def _are_tensors(inputs: list[Any]) -> bool:
    """Whether these are tensors, for a model that has an input with the name `inputs`."""
    return bool(inputs) and all(isinstance(item, dict) and "datatype" in item for item in inputs)


def _brief(spec: TensorSpec) -> str:
    return (
        f"{spec.name} ({spec.dtype})"
        if spec.shape == DYNAMIC_RANK
        else f"{spec.name} ({spec.dtype} {list(spec.shape)})"
    )


def _kserve_array(tensor: dict[str, Any], spec: TensorSpec) -> Array:
    """The array of a tensor that was checked. `data` may be flat or nested; a single value has shape [1] in the
    protocol."""
    return to_array(tensor["data"], spec).reshape(tensor["shape"] if spec.shape else ())


def _is_input(name: str, value: Any) -> bool:
    """False for fields that SageMaker's route adds, and for the empty body of a GET."""
    return name != "model_name" and (name != "body" or len(value) > 0)
