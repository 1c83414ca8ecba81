"""gRPC without files of protocols, of a language model."""

import json

import grpc
import pytest_free as must
from common import LONG, PROMPT
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase
from server import GRPC, KEY

channel = grpc.insecure_channel(GRPC)
pool = DescriptorPool(ProtoReflectionDescriptorDatabase(channel))
INFERENCE = "org.pytorch.serve.grpc.inference.InferenceAPIsService"


def call(name, text, **params):
    """The data of the reply, or of the replies of a stream together."""
    method = pool.FindServiceByName(INFERENCE).methods_by_name[name]
    given, wanted = (GetMessageClass(one) for one in (method.input_type, method.output_type))
    kind = channel.unary_stream if method.server_streaming else channel.unary_unary
    stub = kind(
        f"/{INFERENCE}/{name}", request_serializer=given.SerializeToString, response_deserializer=wanted.FromString
    )
    body = {"prompt": text, "max_new_tokens": 8, "temperature": 0, **params}
    asked = given(model_name="llama", input={"data": json.dumps(body).encode()})
    reply = stub(asked, metadata=[("authorization", f"Bearer {KEY}")], timeout=60)
    return b"".join(one.prediction for one in reply) if method.server_streaming else reply.prediction


def check_1_texts():
    whole = call("Predictions", PROMPT).decode()
    assert whole.strip()
    assert call("StreamPredictions", PROMPT).decode() == whole


def check_2_errors():
    error = must.raises(grpc.RpcError, lambda: call("Predictions", LONG))
    assert error.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert "maximum context length is" in error.details()
