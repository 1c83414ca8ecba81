import asyncio
import queue

import grpc
import ml_dtypes
import numpy as np
import pytest_free as must
import tritonclient.grpc as triton
import tritonclient.grpc.aio as triton_aio
from server import GRPC, KEY, MANAGEMENT_KEY
from tritonclient.grpc import service_pb2 as messages
from tritonclient.grpc import service_pb2_grpc
from tritonclient.utils import InferenceServerException

AUTH = {"authorization": f"Bearer {KEY}"}
MANAGE = {"authorization": f"Bearer {MANAGEMENT_KEY}"}
A = np.arange(6, dtype=np.float32).reshape(2, 3)
B = np.array([7, -8], np.int64)
WANTED = {"output_0": (A + 1).astype(np.float16), "output_1": B, "output_2": A * 2, "output_3": B > 0}
DTYPES = {
    "BOOL": np.bool_, "UINT8": np.uint8, "UINT16": np.uint16, "UINT32": np.uint32, "UINT64": np.uint64,
    "INT8": np.int8, "INT16": np.int16, "INT32": np.int32, "INT64": np.int64, "FP16": np.float16,
    "BF16": ml_dtypes.bfloat16, "FP32": np.float32, "FP64": np.float64,
}  # fmt: skip
WAIT = 60

client = triton.InferenceServerClient(GRPC)
stub = service_pb2_grpc.GRPCInferenceServiceStub(grpc.insecure_channel(GRPC))


def tensor(name, array, datatype):
    made = triton.InferInput(name, list(array.shape), datatype)
    made.set_data_from_numpy(array)
    return made


def two():
    return [tensor("a", A, "FP32"), tensor("b", B, "INT64")]


def count(number, fail=False):
    inputs = [tensor("count", np.array([number], np.int64), "INT64")]
    return [*inputs, tensor("fail", np.array([1], np.int64), "INT64")] if fail else inputs


def infer(model, inputs, **options):
    return client.infer(model, inputs, headers=AUTH, **options)


def refused(call, code, message):
    error = must.raises(InferenceServerException, call)
    assert error.status() == f"StatusCode.{code}", error
    assert message in error.message(), error.message()


def check_server():
    assert client.is_server_live()
    assert client.is_server_ready()
    assert client.get_server_metadata(headers=AUTH).name == "MSX"
    refused(client.get_server_metadata, "PERMISSION_DENIED", "Token Authorization failed")


def check_metadata_and_config():
    metadata = client.get_model_metadata("two", headers=AUTH)
    assert (metadata.platform, list(metadata.versions)) == ("mindspore_mindir", ["1.0"])
    assert [(one.name, one.datatype, list(one.shape)) for one in metadata.inputs] == [
        ("a", "FP32", [-1, 3]),
        ("b", "INT64", [-1]),
    ]
    assert [one.datatype for one in metadata.outputs] == ["FP16", "INT64", "FP32", "BOOL"]
    config = client.get_model_config("two", "1.0", headers=AUTH, as_json=True)["config"]
    assert config["input"][1] == {"name": "b", "data_type": "TYPE_INT64", "dims": ["-1"]}
    assert config["default_model_filename"] == "two.mindir"
    assert client.get_model_config("mirror", headers=AUTH).config.dynamic_batching.max_queue_delay_microseconds > 0


def check_readiness():
    assert client.is_model_ready("two", headers=AUTH)
    assert client.is_model_ready("two", "1.0", headers=AUTH)
    refused(lambda: client.is_model_ready("none", headers=AUTH), "NOT_FOUND", "Model not found: none")
    refused(lambda: client.get_model_metadata("two", "9", headers=AUTH), "NOT_FOUND", "Model version: 9 does not exist")


def check_tensors_of_a_mindir():
    result = infer("two", two(), request_id="7")
    response = result.get_response()
    assert (response.id, response.model_name, response.model_version) == ("7", "two", "1.0")
    for name, wanted in WANTED.items():
        assert np.array_equal(result.as_numpy(name), wanted), name
        assert result.as_numpy(name).dtype == wanted.dtype
    outputs = [triton.InferRequestedOutput("output_2"), triton.InferRequestedOutput("output_1")]
    result = infer("two", two(), outputs=outputs, model_version="1.0")
    assert [one.name for one in result.get_response().outputs] == ["output_2", "output_1"]
    assert np.array_equal(result.as_numpy("output_2"), A * 2)


def check_classification():
    outputs = [triton.InferRequestedOutput("output_2", class_count=2)]
    found = infer("two", two(), outputs=outputs).as_numpy("output_2").tolist()
    assert found == [[b"4.000000:2", b"2.000000:1"], [b"10.000000:2", b"8.000000:1"]]


def check_extensions_that_are_not_served():
    shared = two()
    for one in shared:
        one.set_shared_memory("region", 24)
    for call in (
        lambda: infer("two", shared),
        lambda: infer("two", [shared[0], two()[1]]),
        lambda: client.register_system_shared_memory("r", "/key", 8, headers=AUTH),
        lambda: client.get_trace_settings(headers=AUTH),
        lambda: client.get_log_settings(headers=AUTH),
    ):
        refused(call, "UNIMPLEMENTED", "")


def check_every_data_type():
    for datatype, dtype in DTYPES.items():
        array = np.array([[0, 1, 100]]).astype(dtype)
        found = infer("mirror", [tensor("x", array, datatype)]).as_numpy("x")
        assert found.dtype == array.dtype, datatype
        assert np.array_equal(found, array), datatype


def check_bytes_and_empty_tensors():
    array = np.array([[b"", "é".encode(), b"\0\xff"]], object)
    assert infer("mirror", [tensor("x", array, "BYTES")]).as_numpy("x").tolist() == array.tolist()
    assert infer("mirror", [tensor("x", np.empty((0, 3), np.float32), "FP32")]).as_numpy("x").shape == (0, 3)


def typed(datatype, shape, **contents):
    request = messages.ModelInferRequest(model_name="mirror", id="t")
    one = request.inputs.add(name="x", datatype=datatype, shape=shape)
    one.contents.CopyFrom(messages.InferTensorContents(**contents))
    return request


def call(request):
    return stub.ModelInfer(request, metadata=[*AUTH.items()], timeout=WAIT)


def check_typed_contents():
    for datatype, contents, dtype in (
        ("BOOL", {"bool_contents": [True, False]}, np.bool_),
        ("INT8", {"int_contents": [-128, 127]}, np.int8),
        ("INT32", {"int_contents": [-(2**31), 2**31 - 1]}, np.int32),
        ("INT64", {"int64_contents": [-(2**63), 2**63 - 1]}, np.int64),
        ("UINT16", {"uint_contents": [0, 65535]}, np.uint16),
        ("UINT64", {"uint64_contents": [0, 2**64 - 1]}, np.uint64),
        ("FP32", {"fp32_contents": [1.5, -2.5]}, np.float32),
        ("FP64", {"fp64_contents": [1.5, -2.5]}, np.float64),
    ):
        response = call(typed(datatype, [2], **contents))
        (values,) = contents.values()
        assert np.frombuffer(response.raw_output_contents[0], dtype).tolist() == values
        assert not response.outputs[0].HasField("contents")
    response = call(typed("BYTES", [1], bytes_contents=[b"ab"]))
    assert response.raw_output_contents[0] == b"\x02\0\0\0ab"


def check_parameters_of_all_kinds():
    request = typed("INT32", [1], int_contents=[1])
    request.parameters["yes"].bool_param = True
    request.parameters["int"].int64_param = -5
    request.parameters["large"].uint64_param = 2**64 - 1
    request.parameters["half"].double_param = 0.5
    request.parameters["text"].string_param = "é"
    found = call(request).parameters
    assert found["yes"].bool_param is True
    assert (found["int"].int64_param, found["large"].uint64_param) == (-5, 2**64 - 1)
    assert (found["half"].double_param, found["text"].string_param) == (0.5, "é")
    assert found["kind_x"].string_param == "ndarray"


def check_wrong_contents():
    both = typed("INT32", [1], int_contents=[1])
    both.raw_input_contents.append(b"1234")
    extra = messages.ModelInferRequest(model_name="mirror", raw_input_contents=[b"1", b"2"])
    extra.inputs.add(name="x", datatype="INT8", shape=[1])
    for request, message in (
        (typed("INT32", [2], int_contents=[1]), "input 'x': shape [2] takes 2 values, not 1"),
        (typed("INT8", [1], int_contents=[200]), "input 'x': INT8 values are from -128 to 127"),
        (typed("FP32", [1], int_contents=[1]), "input 'x': FP32 values belong in fp32_contents, not in int_contents"),
        (typed("FP16", [1], fp32_contents=[1]), "input 'x': FP16 values travel in raw_input_contents only"),
        (typed("FP32", [-1], fp32_contents=[1]), "input 'x': 'shape' must be a list of sizes"),
        (typed("FLOAT", [1], fp32_contents=[1]), "input 'x': datatype 'FLOAT' is not one of BOOL, UINT8"),
        (both, "input 'x' has contents although raw_input_contents is there"),
        (extra, "raw_input_contents has 2 tensors, but inputs has 1"),
        (messages.ModelInferRequest(), "model_name is required"),
    ):
        error = must.raises(grpc.RpcError, lambda request=request: call(request))
        assert error.code() is grpc.StatusCode.INVALID_ARGUMENT, error
        assert message in error.details(), error.details()


def check_what_is_wrong_is_named():
    for bad, code, message in (
        (lambda: infer("none", two()), "NOT_FOUND", "Model not found: none"),
        (lambda: infer("two", two(), model_version="9"), "NOT_FOUND", "Model version: 9 does not exist"),
        (lambda: infer("two", two()[:1]), "INVALID_ARGUMENT", "missing input 'b'"),
        (lambda: infer("mirror", [tensor("refuse", A, "FP32")]), "INVALID_ARGUMENT", "refuse: not this one"),
        (lambda: infer("mirror", [tensor("fail", A, "FP32")]), "INTERNAL", "Prediction failed: ValueError: it broke"),
        (lambda: infer("repeat", count(3)), "UNIMPLEMENTED", "use ModelStreamInfer"),
        (lambda: infer("two", two(), client_timeout=1e-4), "DEADLINE_EXCEEDED", ""),
    ):
        refused(bad, code, message)


def check_the_callback_client():
    done = queue.Queue()
    for number in range(20):
        client.async_infer(
            "mirror",
            [tensor("x", A + number, "FP32")],
            lambda result, error: done.put((result, error)),
            request_id=str(number),
            headers=AUTH,
        )
    for _ in range(20):
        result, error = done.get(timeout=WAIT)
        assert error is None
        assert np.array_equal(result.as_numpy("x"), A + int(result.get_response().id))


class Stream:
    """Replies of a stream, in order."""

    def __init__(self):
        self.heard = queue.Queue()
        client.start_stream(lambda result, error: self.heard.put((result, error)), headers=AUTH)

    def ask(self, model, inputs, **options):
        client.async_stream_infer(model, inputs, **options)

    def next(self):
        return self.heard.get(timeout=WAIT)

    def until_final(self):
        found = []
        while not found or not is_final(found[-1]):
            result, error = self.next()
            assert error is None, error
            found.append(result)
        return found

    def __enter__(self):
        return self

    def __exit__(self, *error):
        client.stop_stream()


def is_final(result):
    return result.get_response().parameters["triton_final_response"].bool_param


def check_a_stream_of_many_responses():
    with Stream() as stream:
        stream.ask("repeat", count(3), request_id="r", enable_empty_final_response=True)
        found = stream.until_final()
        assert {result.get_response().id for result in found} == {"r"}
        full = [result for result in found if result.get_response().outputs]
        assert [result.as_numpy("index").tolist() for result in full] == [[0], [1], [2]]
        assert full in (found, found[:-1])  # the last one may be known for it, or an empty one follows
        stream.ask("repeat", count(0), request_id="none", enable_empty_final_response=True)
        result, error = stream.next()
        assert error is None
        assert is_final(result)


def check_a_stream_outlives_bad_requests():
    with Stream() as stream:
        stream.ask("none", two(), request_id="a")
        result, error = stream.next()
        assert "Model not found: none" in error.message()
        stream.ask("mirror", [tensor("refuse", A, "FP32")], request_id="b")
        assert "refuse: not this one" in stream.next()[1].message()
        stream.ask("repeat", count(1, fail=True), request_id="c")
        result, error = stream.next()
        assert result.as_numpy("index").tolist() == [0]
        assert "it broke in the middle" in stream.next()[1].message()
        stream.ask("mirror", [tensor("x", A, "FP32")], request_id="d")
        result, error = stream.next()
        assert error is None
        assert np.array_equal(result.as_numpy("x"), A)
        assert (result.get_response().id, is_final(result)) == ("d", True)


def check_an_error_in_a_stream_says_whose_it_is():
    requests = [messages.ModelInferRequest(model_name="none", id="a")]
    (response,) = stub.ModelStreamInfer(iter(requests), metadata=[*AUTH.items()], timeout=WAIT)
    assert response.error_message == "Model not found: none"
    assert response.infer_response.id == "a"
    call = stub.ModelStreamInfer(iter(requests), timeout=WAIT)
    assert must.raises(grpc.RpcError, lambda: list(call)).code() is grpc.StatusCode.PERMISSION_DENIED


def check_many_requests_of_one_stream():
    with Stream() as stream:
        for number in range(200):
            stream.ask("mirror", [tensor("x", A + number, "FP32")], request_id=str(number))
        for _ in range(200):
            result, error = stream.next()
            assert error is None, error
            assert np.array_equal(result.as_numpy("x"), A + int(result.get_response().id))


async def check_the_async_client():
    async with triton_aio.InferenceServerClient(GRPC) as aio:
        assert await aio.is_model_ready("two", headers=AUTH)
        results = await asyncio.gather(*(aio.infer("two", two(), headers=AUTH) for _ in range(10)))
        assert all(np.array_equal(result.as_numpy("output_2"), A * 2) for result in results)

        async def requests():
            for number in range(3):
                yield {"model_name": "repeat", "inputs": count(number), "request_id": str(number)}

        heard = [pair async for pair in aio.stream_infer(requests(), headers=AUTH)]
        found = [(result.get_response().id, result.as_numpy("index").tolist()) for result, error in heard]
        assert sorted(found) == [("1", [0]), ("2", [0]), ("2", [1])]


async def check_a_stream_that_is_left_ends_its_requests():
    before = fails()
    async with triton_aio.InferenceServerClient(GRPC) as aio:

        async def requests():
            yield {"model_name": "repeat", "inputs": count(2**40), "request_id": "long"}

        answers = aio.stream_infer(requests(), headers=AUTH)
        result, _ = await answers.__anext__()
        assert result.as_numpy("index").tolist() == [0]
        answers.cancel()
    while fails() == before:
        await asyncio.sleep(0.05)
    assert len(infer_stream(count(1))) == 1


def fails():
    return client.get_inference_statistics("repeat", headers=AUTH).model_stats[0].inference_stats.fail.count


def infer_stream(inputs):
    with Stream() as stream:
        stream.ask("repeat", inputs)
        return [stream.next()]


def check_statistics():
    before = client.get_inference_statistics("mirror", headers=AUTH).model_stats[0]
    infer("mirror", [tensor("x", A, "FP32")])
    after = client.get_inference_statistics("mirror", "1.0", headers=AUTH).model_stats[0]
    assert after.inference_count == before.inference_count + 1
    assert after.inference_stats.success.ns > before.inference_stats.success.ns
    assert {one.name for one in client.get_inference_statistics(headers=AUTH).model_stats} >= {"two", "mirror"}


def check_the_repository():
    index = {one.name: one for one in client.get_model_repository_index(headers=AUTH).models}
    assert (index["two"].state, index["spare"].state) == ("READY", "UNAVAILABLE")
    refused(lambda: client.unload_model("mirror", headers=AUTH), "PERMISSION_DENIED", "Token Authorization failed")
    client.load_model("spare", headers=MANAGE)
    assert client.is_model_ready("spare", headers=AUTH)
    assert np.array_equal(infer("spare", [tensor("x", A, "FP32")]).as_numpy("x"), A)
    client.unload_model("spare", headers=MANAGE)
    assert not client.is_model_ready("spare", headers=AUTH)
    refused(lambda: infer("spare", [tensor("x", A, "FP32")]), "UNAVAILABLE", "has no worker")
    client.load_model("spare", headers=MANAGE)
    assert client.is_model_ready("spare", headers=AUTH)
    refused(lambda: client.load_model("none", headers=MANAGE), "NOT_FOUND", "Model not found: none")
    refused(lambda: client.load_model("two", headers=MANAGE, config="{}"), "UNIMPLEMENTED", "Parameters of load")
