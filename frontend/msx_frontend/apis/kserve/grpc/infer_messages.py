"""The way between the messages of ModelInfer, of any package that has them, and what a worker reads and writes."""

from collections.abc import Mapping
from typing import Any

import msgspec

from msx_core.kserve.request import NOT_SERVED
from msx_core.kserve.types import GRPC_CONTENTS
from msx_core.service_errors import BadRequest
from msx_frontend.apis.kserve.repository import Unsupported
from msx_net.grpc.messages import message_class

Body = tuple[bytes, int]
"""JSON and the tensors' bytes behind it, and how many of these bytes are JSON."""


class InferMessages:
    """`package` is `inference`, or that of a copy of the protocol with the same numbers."""

    def __init__(self, package: str) -> None:
        self._response = message_class(f"{package}.ModelInferResponse")
        self._choices = message_class(f"{package}.InferParameter").DESCRIPTOR.fields_by_name

    def body(self, request: Any) -> Body:
        """Body for the worker, which decodes the tensors. Raises BadRequest."""
        inputs, tensors = _inputs(request)
        head: dict[str, Any] = {"inputs": inputs}
        if request.id:
            head["id"] = request.id
        if request.outputs:
            head["outputs"] = [{"name": one.name, "parameters": _output_parameters(one)} for one in request.outputs]
        head["parameters"] = {**parameters_of(request.parameters), "binary_data_output": True}
        encoded = msgspec.json.encode(head)
        return b"".join([encoded, *tensors]), len(encoded)

    def response(self, body: bytes, json_size: int) -> Any:
        """All outputs are raw: Triton's client reads no others."""
        head = msgspec.json.decode(body[:json_size])
        made = self.empty(head["model_name"], head["model_version"], head.get("id", ""))
        self.set_parameters(made.parameters, head.get("parameters") or {})
        at = json_size
        for output in head["outputs"]:
            size = output["parameters"]["binary_data_size"]
            made.outputs.add(name=output["name"], datatype=output["datatype"], shape=output["shape"])
            made.raw_output_contents.append(body[at : at + size])
            at += size
        return made

    def empty(self, model: str, version: str, id: str) -> Any:
        return self._response(model_name=model, model_version=version, id=id)

    def set_parameters(self, message: Any, parameters: Mapping[str, Any]) -> None:
        for name, value in parameters.items():
            choice = self._choice(value)
            setattr(message[name], choice, str(value) if choice == "string_param" else value)

    def _choice(self, value: Any) -> str:
        """Name of the member that takes this value, else `string_param`; older protocols have fewer members."""
        choice = "string_param"
        if isinstance(value, bool):
            choice = "bool_param"
        elif isinstance(value, int) and -(1 << 63) <= value < 1 << 64:
            choice = "int64_param" if value < 1 << 63 else "uint64_param"
        elif isinstance(value, float):
            choice = "double_param"
        return choice if choice in self._choices else "string_param"


def parameters_of(message: Any) -> dict[str, Any]:
    """Parameters that have a value."""
    chosen = {name: value.WhichOneof("parameter_choice") for name, value in message.items()}
    return {name: getattr(message[name], choice) for name, choice in chosen.items() if choice}


def _inputs(request: Any) -> tuple[list[dict[str, Any]], list[bytes]]:
    raw = request.raw_input_contents
    if not raw:
        tensors = [tensor.contents.SerializeToString() for tensor in request.inputs]
        pairs = zip(request.inputs, tensors, strict=True)
        return [{**_input(tensor, len(data)), GRPC_CONTENTS: True} for tensor, data in pairs], tensors
    if len(raw) != len(request.inputs):
        _refuse_shared_memory(request)
        raise BadRequest(f"raw_input_contents has {len(raw)} tensors, but inputs has {len(request.inputs)}.")
    for tensor in request.inputs:
        if tensor.HasField("contents"):
            raise BadRequest(f"input {tensor.name!r} has contents although raw_input_contents is there.")
    return [_input(tensor, len(data)) for tensor, data in zip(request.inputs, raw, strict=True)], list(raw)


def _refuse_shared_memory(request: Any) -> None:
    """Tensors in it have no raw contents. Where all inputs are there, the worker says the same."""
    for tensor in request.inputs:
        if NOT_SERVED in tensor.parameters:
            raise Unsupported(f"input {tensor.name!r}: shared memory is not served here; send the tensor's own bytes.")


def _input(tensor: Any, size: int) -> dict[str, Any]:
    parameters = {**parameters_of(tensor.parameters), "binary_data_size": size}
    return {"name": tensor.name, "datatype": tensor.datatype, "shape": list(tensor.shape), "parameters": parameters}


def _output_parameters(output: Any) -> dict[str, Any]:
    return {**parameters_of(output.parameters), "binary_data": True}
