"""The messages of MindSpore Serving's service."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorSet

import msx_mindspore_serving
import msx_net
from msx_mindspore_serving.packages.mindspore_serving.proto import ms_service_pb2, ms_service_pb2_grpc

FIELDS = {
    "PredictRequest": {"servable_spec": 1, "instances": 2},
    "PredictReply": {"servable_spec": 1, "instances": 3, "error_msg": 4},
    "ErrorMsg": {"error_code": 1, "error_msg": 2},
    "Instance": {"items": 1, "output_buffers": 2},
    "Tensor": {"shape": 1, "dtype": 2, "data": 3, "bytes_val": 4, "shm_data": 5},
    "TensorShape": {"dims": 1},
    "ShmTensorData": {"memory_key": 1, "bytes_size": 2, "data_offset": 3, "data_size": 4},
    "ServableSpec": {"name": 1, "method_name": 2, "version_number": 3},
    "TensorInfo": {"shape": 1, "dtype": 2, "size": 3, "is_no_batch_dim": 4},
}


@pytest.mark.parametrize("name", FIELDS)
def test_fields_have_their_numbers(name: str) -> None:
    message = getattr(ms_service_pb2, name)
    assert {field.name: field.number for field in message.DESCRIPTOR.fields} == FIELDS[name]
    assert message.DESCRIPTOR.full_name == f"mindspore.serving.proto.{name}"


def test_types_are_numbers_by_name() -> None:
    names = ms_service_pb2.DataType.keys()
    assert [getattr(ms_service_pb2, name) for name in names] == ms_service_pb2.DataType.values() == [*range(15)]


def test_the_file_is_the_servers() -> None:
    """scripts/build-protos makes both."""
    served = Path(msx_net.__file__).parent / "grpc/descriptors.binpb"
    own = Path(msx_mindspore_serving.__file__).parent / "packages/mindspore_serving/proto/ms_service.binpb"
    (file,) = FileDescriptorSet.FromString(own.read_bytes()).file
    assert file in FileDescriptorSet.FromString(served.read_bytes()).file


def test_two_module_names_live_beside_each_other() -> None:
    other: Any = import_module("mindspore_serving.proto.ms_service_pb2")
    sent = other.PredictRequest(servable_spec=other.ServableSpec(name="add")).SerializeToString()
    assert ms_service_pb2.PredictRequest.FromString(sent).servable_spec.name == "add"


class Adds(ms_service_pb2_grpc.MSServiceServicer):
    def Predict(self, request: Any, context: Any) -> Any:
        return ms_service_pb2.PredictReply(servable_spec=request.servable_spec)


@pytest.fixture
def stub(request: pytest.FixtureRequest) -> Iterator[Any]:
    server = grpc.server(ThreadPoolExecutor(1))
    ms_service_pb2_grpc.add_MSServiceServicer_to_server(request.param, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        yield ms_service_pb2_grpc.MSServiceStub(channel)
    server.stop(None).wait()


REQUEST = ms_service_pb2.PredictRequest(servable_spec={"name": "add"})


@pytest.mark.parametrize("stub", [Adds()], indirect=True)
def test_stub_and_servicer(stub: Any) -> None:
    assert stub.Predict(REQUEST).servable_spec.name == "add"


@pytest.mark.parametrize("stub", [ms_service_pb2_grpc.MSServiceServicer()], indirect=True)
def test_a_servicer_without_the_method(stub: Any) -> None:
    with pytest.raises(grpc.RpcError, match="Method not implemented!"):
        stub.Predict(REQUEST)
