"""gRPC without files of protocols: the server describes its services."""

import grpc
import pytest_free as must
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase
from server import GRPC, KEY

channel = grpc.insecure_channel(GRPC)
database = ProtoReflectionDescriptorDatabase(channel)
pool = DescriptorPool(database)
TORCHSERVE = "org.pytorch.serve.grpc.inference.InferenceAPIsService"
KSERVE = "inference.GRPCInferenceService"


def call(service, name, /, key=KEY, **members):
    """The reply, or the list of replies of a stream."""
    method = pool.FindServiceByName(service).methods_by_name[name]
    given, wanted = (GetMessageClass(one) for one in (method.input_type, method.output_type))
    kind = channel.unary_stream if method.server_streaming else channel.unary_unary
    stub = kind(
        f"/{service}/{name}", request_serializer=given.SerializeToString, response_deserializer=wanted.FromString
    )
    reply = stub(given(**members), metadata=[("authorization", f"Bearer {key}")] if key else None, timeout=30)
    return list(reply) if method.server_streaming else reply


def check_services():
    assert {TORCHSERVE, KSERVE, "grpc.health.v1.Health"} <= set(database.get_services())


def check_each_method_is_described():
    for service in database.get_services():
        methods = pool.FindServiceByName(service).methods
        assert methods, service
        assert all(method.input_type.full_name and method.output_type.full_name for method in methods)


def check_ping():
    assert "Healthy" in call(TORCHSERVE, "Ping").health
    assert call("grpc.health.v1.Health", "Check", key="").status == 1
    assert call(KSERVE, "ModelReady", name="parrot").ready


def check_prediction():
    reply = call(TORCHSERVE, "Predictions", model_name="parrot", input={"data": b"one two"})
    assert reply.prediction == b"one two"


def check_stream():
    replies = call(TORCHSERVE, "StreamPredictions", model_name="parrot", input={"data": b"one two"})
    assert b"".join(reply.prediction for reply in replies) == b"one two"


def check_errors():
    asked = {"model_name": "parrot", "input": {"data": b"one"}}
    refused = must.raises(grpc.RpcError, lambda: call(TORCHSERVE, "Predictions", key="", **asked))
    assert refused.code() in (grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED)
    must.raises(grpc.RpcError, lambda: call(TORCHSERVE, "Predictions", model_name="crow", input={"data": b"one"}))
