"""The calls of a client, as gRPC: TorchServe's services, KServe v2 for tensors, and MSX's own for traffic."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msx_client.call import RpcCall
from msx_client.errors import NotServedError
from msx_client.grpc.messages import INFERENCE, MANAGEMENT, message
from msx_client.tensors import datatype_of, from_bytes, is_array, to_bytes
from msx_client.texts import ChatReply, Completion, Ranked, TextPiece

if TYPE_CHECKING:
    import numpy as np

SERVICE = f"/{INFERENCE}.InferenceAPIsService"
MANAGER = f"/{MANAGEMENT}.ManagementAPIsService"
KSERVE = "/inference.GRPCInferenceService"
SEQUENCE_START, SEQUENCE_END = "ts_request_sequence_start", "ts_request_sequence_end"
TRAFFIC = "/msx.TrafficService"


class RpcCalls:
    """The same methods as `HttpCalls`. A prediction's answer is bytes: gRPC has no content types."""

    # -- predictions --

    def predict(
        self, model: str, data: Any, version: str | None, method: str | None, headers: Mapping[str, str]
    ) -> RpcCall[Any]:
        return _prediction("Predictions", model, fields_of(data), version, method, _bytes)

    def stream(
        self, model: str, data: Any, version: str | None, method: str | None, headers: Mapping[str, str]
    ) -> RpcCall[bytes]:
        return _prediction("StreamPredictions", model, fields_of(data), version, method, _bytes)

    def in_sequence(
        self, model: str, data: Any, version: str | None, sequence: str, first: bool, last: bool
    ) -> RpcCall[Any]:
        marks = {SEQUENCE_START: first, SEQUENCE_END: last}
        fields = {**fields_of(data), **{name: b"true" for name, on in marks.items() if on}}
        call = _prediction("Predictions", model, fields, version, None, _bytes)
        call.request.sequence_id = sequence
        return call

    def infer(
        self,
        model: str,
        inputs: Mapping[str, np.ndarray[Any, Any]],
        outputs: Sequence[str] | None,
        version: str | None,
        parameters: Mapping[str, Any],
        headers: Mapping[str, str],
    ) -> RpcCall[dict[str, np.ndarray[Any, Any]]]:
        request = message("inference.ModelInferRequest")(model_name=model, model_version=version or "")
        for name, array in inputs.items():
            request.inputs.add(name=name, datatype=datatype_of(array), shape=array.shape)
            request.raw_input_contents.append(to_bytes(array))
        for name in outputs or ():
            request.outputs.add(name=name)
        for name, value in parameters.items():
            setattr(request.parameters[name], _PARAMETER[type(value)], value)
        return RpcCall("inference", f"{KSERVE}/ModelInfer", request, message("inference.ModelInferResponse"), _tensors)

    # -- texts: the plain predictions of language models --

    def generate(self, model: str, prompt: str, options: Mapping[str, Any]) -> RpcCall[Completion]:
        fields = _fields({"prompt": prompt, **options})
        return _prediction("Predictions", model, fields, None, None, lambda reply: Completion(_text(reply)))

    def generate_stream(self, model: str, prompt: str, options: Mapping[str, Any]) -> RpcCall[TextPiece]:
        fields = _fields({"prompt": prompt, **options})
        return _prediction("StreamPredictions", model, fields, None, None, lambda reply: TextPiece(_text(reply)))

    def chat(self, model: str, messages: Sequence[Mapping[str, Any]], options: Mapping[str, Any]) -> RpcCall[ChatReply]:
        fields = _fields({"messages": list(messages), **options})
        return _prediction("Predictions", model, fields, None, None, lambda reply: ChatReply(_text(reply)))

    def chat_stream(
        self, model: str, messages: Sequence[Mapping[str, Any]], options: Mapping[str, Any]
    ) -> RpcCall[TextPiece]:
        fields = _fields({"messages": list(messages), **options})
        return _prediction("StreamPredictions", model, fields, None, None, lambda reply: TextPiece(_text(reply)))

    def embed(self, model: str, texts: Sequence[str], options: Mapping[str, Any]) -> RpcCall[list[list[float]]]:
        """Embed one text: a plain prediction has one input."""
        (text,) = texts
        fields = _fields({"input": text, **options})
        return _prediction("Predictions", model, fields, None, None, lambda reply: [json.loads(reply.prediction)])

    def rerank(
        self, model: str, query: str, documents: Sequence[str], options: Mapping[str, Any]
    ) -> RpcCall[list[Ranked]]:
        raise NotServedError("Reranking is not served over gRPC: use the server's HTTP address.")

    # -- health and metadata --

    def ready(self, model: str | None) -> RpcCall[Any]:
        if model is None:
            request, response = message("inference.ServerReadyRequest")(), message("inference.ServerReadyResponse")
            return RpcCall("inference", f"{KSERVE}/ServerReady", request, response, _ready)
        request, response = message("inference.ModelReadyRequest")(name=model), message("inference.ModelReadyResponse")
        return RpcCall("inference", f"{KSERVE}/ModelReady", request, response, _ready)

    def metadata(self, model: str, version: str | None) -> RpcCall[Any]:
        request = message("inference.ModelMetadataRequest")(name=model, version=version or "")
        return RpcCall(
            "inference", f"{KSERVE}/ModelMetadata", request, message("inference.ModelMetadataResponse"), _metadata
        )

    # -- management --

    def register(self, url: str, options: Mapping[str, Any]) -> RpcCall[str]:
        return _managed("RegisterModel", {"url": url, **options}, _sentence)

    def scale(self, model: str, version: str | None, options: Mapping[str, Any]) -> RpcCall[str]:
        return _managed("ScaleWorker", {**_model(model, version), **options}, _sentence)

    def describe(self, model: str, version: str | None, customized: bool) -> RpcCall[list[dict[str, Any]]]:
        return _managed("DescribeModel", {**_model(model, version), "customized": customized}, _json)

    def models(self, limit: int, page: str) -> RpcCall[dict[str, Any]]:
        return _managed("ListModels", {"limit": limit, "next_page_token": int(page)}, _json)

    def unregister(self, model: str, version: str | None) -> RpcCall[str]:
        return _managed("UnregisterModel", _model(model, version), _sentence)

    def set_default(self, model: str, version: str) -> RpcCall[str]:
        return _managed("SetDefault", _model(model, version), _sentence)

    def replace_aliases(self, model: str, aliases: Sequence[str]) -> RpcCall[str]:
        raise NotServedError("Aliases are not replaced over gRPC: use the server's HTTP address.")

    def show_traffic(self, model: str) -> RpcCall[dict[str, Any]]:
        return _traffic("ShowTraffic", message("msx.TrafficRequest")(model_name=model), _json)

    def divide_traffic(self, model: str, weights: Mapping[str, float], sticky_header: str) -> RpcCall[Any]:
        request = message("msx.DivideTrafficRequest")(model_name=model, weights=weights, sticky_header=sticky_header)
        return _traffic("DivideTraffic", request, _sentence)

    def end_traffic(self, model: str) -> RpcCall[Any]:
        return _traffic("EndTraffic", message("msx.TrafficRequest")(model_name=model), _sentence)


def fields_of(data: Any) -> dict[str, bytes]:
    """Fields of the handler's row: `body`, as over HTTP, or the names of a dict whose values are all bytes."""
    if isinstance(data, Mapping) and data and all(isinstance(value, bytes) for value in data.values()):
        return dict(data)
    if isinstance(data, bytes | bytearray | memoryview):
        return {"body": bytes(data)}
    if is_array(data):
        from msx_client.http.content import encode

        return {"body": encode(data)[0]}
    return {"body": data.encode() if isinstance(data, str) else json.dumps(data).encode()}


_PARAMETER = {bool: "bool_param", int: "int64_param", str: "string_param", float: "double_param"}


def _fields(values: Mapping[str, Any]) -> dict[str, bytes]:
    """As form fields: texts as they are, the rest as JSON."""
    return {name: (value if isinstance(value, str) else json.dumps(value)).encode() for name, value in values.items()}


def _prediction(
    rpc: str, model: str, fields: Mapping[str, bytes], version: str | None, method: str | None, read: Any
) -> RpcCall[Any]:
    name = f"{model}:{method}" if method else model
    request = message(f"{INFERENCE}.PredictionsRequest")(model_name=name, model_version=version or "", input=fields)
    return RpcCall("inference", f"{SERVICE}/{rpc}", request, message(f"{INFERENCE}.PredictionResponse"), read)


def _managed(rpc: str, values: Mapping[str, Any], read: Any) -> RpcCall[Any]:
    """Raises NotServedError for a parameter that only HTTP has."""
    make = message(f"{MANAGEMENT}.{rpc}Request")
    known = make.DESCRIPTOR.fields_by_name
    if unknown := [name for name in values if name not in known]:
        raise NotServedError(f"gRPC's {rpc} does not have {', '.join(unknown)}: use the server's HTTP address.")
    return RpcCall("management", f"{MANAGER}/{rpc}", make(**values), message(f"{MANAGEMENT}.ManagementResponse"), read)


def _traffic(rpc: str, request: Any, read: Any) -> RpcCall[Any]:
    return RpcCall("management", f"{TRAFFIC}/{rpc}", request, message("msx.TrafficResponse"), read)


def _model(model: str, version: str | None) -> dict[str, str]:
    return {"model_name": model, "model_version": version or ""}


def _bytes(reply: Any) -> bytes:
    data: bytes = reply.prediction
    return data


def _text(reply: Any) -> str:
    text: str = reply.prediction.decode(errors="replace")
    return text


def _json(reply: Any) -> Any:
    return json.loads(reply.msg)


def _sentence(reply: Any) -> str:
    """Like REST's: the member `status` where the message is JSON."""
    try:
        said = json.loads(reply.msg)
    except ValueError:
        return str(reply.msg)
    return str(said.get("status", reply.msg)) if isinstance(said, dict) else str(reply.msg)


def _ready(reply: Any) -> None:
    if not reply.ready:
        from msx_client.errors import UnavailableError

        raise UnavailableError("It is not ready.", status=503)


def _metadata(reply: Any) -> dict[str, Any]:
    from google.protobuf.json_format import MessageToDict

    found = MessageToDict(reply, preserving_proto_field_name=True)
    for tensor in [*found.get("inputs", ()), *found.get("outputs", ())]:
        tensor["shape"] = [int(size) for size in tensor.get("shape", ())]
    return found


def _tensors(reply: Any) -> dict[str, Any]:
    return {
        output.name: from_bytes(output.datatype, list(output.shape), data)
        for output, data in zip(reply.outputs, reply.raw_output_contents, strict=True)
    }
