"""The client of servables."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest

from msx_mindspore_serving.packages.mindspore_serving.client import Client, SSLConfig
from msx_mindspore_serving.packages.mindspore_serving.client.results import ClientGrpcAsyncError, read_reply
from msx_mindspore_serving.packages.mindspore_serving.client.values import fill_instance, read_instance
from msx_mindspore_serving.packages.mindspore_serving.proto import ms_service_pb2 as pb
from msx_mindspore_serving.packages.mindspore_serving.proto.ms_service_pb2_grpc import add_MSServiceServicer_to_server

pytestmark = pytest.mark.mindspore  # NumPy comes with it


def tensor_of(value: Any) -> Any:
    instance = pb.Instance()
    fill_instance(instance, {"x": value})
    return instance.items["x"]


@pytest.mark.parametrize(
    ("value", "dtype", "shape"),
    [
        (np.zeros((2, 3), np.float32), "MS_FLOAT32", [2, 3]),
        (np.zeros((3, 2), np.float16).T, "MS_FLOAT16", [2, 3]),
        (np.zeros((), np.uint8), "MS_UINT8", []),
        (np.int16(3), "MS_INT16", []),
        (np.float64(3), "MS_FLOAT64", []),
        (True, "MS_BOOL", [1]),
        (3, "MS_INT64", [1]),
        (1 << 63, "MS_UINT64", [1]),
        (3.5, "MS_FLOAT64", [1]),
    ],
)
def test_numbers(value: Any, dtype: str, shape: list[int]) -> None:
    tensor = tensor_of(value)
    assert (pb.DataType.Name(tensor.dtype), [*tensor.shape.dims]) == (dtype, shape)
    assert tensor.HasField("shape")
    assert tensor.data == np.ascontiguousarray(value).tobytes()


@pytest.mark.parametrize(("value", "dtype"), [("ä", "MS_STRING"), ("", "MS_STRING"), (b"\0", "MS_BYTES")])
def test_texts_and_bytes(value: Any, dtype: str) -> None:
    tensor = tensor_of(value)
    assert (pb.DataType.Name(tensor.dtype), [*tensor.shape.dims], len(tensor.bytes_val)) == (dtype, [1], 1)
    assert read_instance(pb.Instance(items={"x": tensor})) == {"x": value}


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.array(["a"]), "Unknown data type <U1"),
        (np.array([None]), "Unknown data type object"),
        (np.zeros(2, complex), "Unknown data type complex128"),
        (np.zeros(2, ">f4"), "Unknown data type >f4"),
        (1 << 64, "Unknown data type object"),
        ([1], "Not support value type <class 'list'>"),
        (None, "Not support value type <class 'NoneType'>"),
        (np.bool_(1), "Not support value type <class 'numpy.bool"),
        (bytearray(b"a"), "Not support value type <class 'bytearray'>"),
    ],
)
def test_values_that_cannot_be_sent(value: Any, message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        tensor_of(value)


@pytest.mark.parametrize(("instance", "error"), [([1], RuntimeError), ({1: 2}, TypeError)])
def test_instances_that_are_none(instance: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        fill_instance(pb.Instance(), instance)


def test_arrays_are_read_only() -> None:
    found = read_instance(pb.Instance(items={"x": tensor_of(np.arange(6.0).reshape(2, 3)), "y": tensor_of(np.int8(3))}))
    assert found["x"].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert not found["x"].flags.writeable
    assert found["y"].shape == ()


def test_several_texts() -> None:
    assert read_instance(pb.Instance(items={"x": pb.Tensor(dtype=13, bytes_val=[b"a", b"b"])})) == {"x": ["a", "b"]}


ONE = pb.Instance(items={"y": pb.Tensor(dtype=13, bytes_val=[b"a"])})
BAD, FINE = pb.ErrorMsg(error_code=3, error_msg=b"no"), pb.ErrorMsg()


@pytest.mark.parametrize(
    ("instances", "errors", "result"),
    [
        ([ONE, ONE], [], [{"y": "a"}, {"y": "a"}]),
        ([], [BAD], {"error": "no"}),
        ([ONE, pb.Instance()], [FINE, BAD], [{"y": "a"}, {"error": "no"}]),
    ],
)
def test_replies(instances: list[Any], errors: list[Any], result: Any) -> None:
    assert read_reply(pb.PredictReply(instances=instances, error_msg=errors), 2) == result


def test_a_reply_that_fits_nothing() -> None:
    with pytest.raises(RuntimeError, match="error msg result size 3 not be 0, 1 or length of instances 2"):
        read_reply(pb.PredictReply(instances=[ONE, ONE], error_msg=[BAD, BAD, BAD]), 2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("", "s", "m"), "Parameter 'address' should not be empty str"),
        ((1, "s", "m"), "Parameter 'address' should be str, but actually <class 'int'>"),
        (("a", "", "m"), "Parameter 'servable_name' should not be empty str"),
        (("a", "s", None), "Parameter 'method_name' should be str, but actually <class 'NoneType'>"),
        (("a", "s", "m", -1), "Parameter 'version_number' should be >= 0"),
        (("a", "s", "m", "1"), "Parameter 'version_number' should be int, but actually <class 'str'>"),
        (("a", "s", "m", 0, 1), "The type of ssl_config should be type of SSLConfig"),
        (
            ("a", "s", "m", 0, SSLConfig(certificate="c")),
            "The certificate and private_key should be passed at the same time",
        ),
    ],
)
def test_bad_arguments(arguments: Any, message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        Client(*arguments)


def test_bad_certificates(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="Parameter 'custom_ca' should not be empty str"):
        SSLConfig(custom_ca="")
    with pytest.raises(FileNotFoundError):
        Client("a", "s", "m", ssl_config=SSLConfig(custom_ca=str(tmp_path / "none.pem")))


class Doubles:
    def Predict(self, request: Any, context: Any) -> Any:
        if request.servable_spec.version_number == 9:
            context.abort(grpc.StatusCode.DEADLINE_EXCEEDED, "too late")
        return pb.PredictReply(servable_spec=request.servable_spec, instances=[*request.instances, *request.instances])


def test_calls_over_a_unix_socket(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    server = grpc.server(ThreadPoolExecutor(1))
    add_MSServiceServicer_to_server(Doubles(), server)
    server.add_insecure_port(f"unix:{tmp_path}/s")
    server.start()
    try:
        client = Client(f"unix:{tmp_path}/s", "add", "double", version_number=True)
        assert client.infer({"x": "a"}) == [{"x": "a"}, {"x": "a"}]
        assert client.infer_async(({"x": "a"},)).result() == [{"x": "a"}, {"x": "a"}]
        client.version_number = 9
        assert client.infer([]) == {"error": "Grpc Error, (4, 'deadline exceeded'), too late"}
        assert capsys.readouterr().out == "too late\nDEADLINE_EXCEEDED\n(4, 'deadline exceeded')\n"
        with pytest.raises(grpc.RpcError):
            client.infer_async([]).result()
        client.channel.close()
    finally:
        server.stop(None).wait()


def test_large_messages(tmp_path: Path) -> None:
    """Above the 4 MB that gRPC takes unless it is told otherwise."""
    server = grpc.server(ThreadPoolExecutor(1), options=[("grpc.max_receive_message_length", -1)])
    add_MSServiceServicer_to_server(Doubles(), server)
    server.add_insecure_port(f"unix:{tmp_path}/s")
    server.start()
    try:
        client = Client(f"unix:{tmp_path}/s", "add", "double")
        first, second = client.infer({"x": np.arange(1 << 20)})
        assert first["x"].nbytes == 8 << 20
        assert np.array_equal(first["x"], second["x"])
        client.channel.close()
    finally:
        server.stop(None).wait()


def test_a_call_that_was_not_begun() -> None:
    assert ClientGrpcAsyncError({"error": "no"}).result() == {"error": "no"}
