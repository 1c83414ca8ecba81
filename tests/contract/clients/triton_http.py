import asyncio
import gzip
import json
import urllib.error
import urllib.request

import ml_dtypes
import numpy as np
import pytest_free as must
import tritonclient.http as triton
import tritonclient.http.aio as triton_aio
from server import KEY, MANAGEMENT_KEY, URL
from tritonclient.utils import InferenceServerException

ADDRESS = URL.removeprefix("http://")
AUTH = {"Authorization": f"Bearer {KEY}"}
MANAGE = {"Authorization": f"Bearer {MANAGEMENT_KEY}"}
A = np.arange(6, dtype=np.float32).reshape(2, 3)
B = np.array([7, -8], np.int64)
WANTED = {"output_0": (A + 1).astype(np.float16), "output_1": B, "output_2": A * 2, "output_3": B > 0}
DTYPES = {
    "BOOL": np.bool_, "UINT8": np.uint8, "UINT16": np.uint16, "UINT32": np.uint32, "UINT64": np.uint64,
    "INT8": np.int8, "INT16": np.int16, "INT32": np.int32, "INT64": np.int64, "FP32": np.float32, "FP64": np.float64,
}  # fmt: skip

client = triton.InferenceServerClient(ADDRESS, concurrency=4, network_timeout=120, connection_timeout=120)


def tensor(name, array, datatype, binary=True):
    made = triton.InferInput(name, list(array.shape), datatype)
    made.set_data_from_numpy(array, binary_data=binary)
    return made


def two(binary=True, a=A, b=B):
    return [tensor("a", a, "FP32", binary), tensor("b", b, "INT64", binary)]


def infer(model, inputs, **options):
    return client.infer(model, inputs, headers=dict(AUTH), **options)


def refused(call, status, message):
    error = must.raises(InferenceServerException, call)
    assert error.status() == str(status), error
    assert message in error.message(), error.message()


def post(path, body, headers):
    """Without the client: the reply's status, headers and body."""
    request = urllib.request.Request(f"{URL}{path}", body, {**AUTH, **headers}, method="POST")
    try:
        with urllib.request.urlopen(request, timeout=60) as reply:
            return reply.status, reply.headers, reply.read()
    except urllib.error.HTTPError as error:
        return error.code, error.headers, error.read()


def check_server():
    assert client.is_server_live()
    assert client.is_server_ready()
    metadata = client.get_server_metadata(headers=AUTH)
    assert metadata["name"] == "MSX"
    assert "binary_tensor_data" in metadata["extensions"]
    assert metadata["extenstion"] == ["kserve", "kubeflow"]
    refused(client.get_server_metadata, 401, "Token Authorization failed")


def check_metadata_of_a_mindir():
    metadata = client.get_model_metadata("two", headers=AUTH)
    assert metadata == {
        "name": "two",
        "versions": ["1.0"],
        "platform": "mindspore_mindir",
        "inputs": [
            {"name": "a", "datatype": "FP32", "shape": [-1, 3]},
            {"name": "b", "datatype": "INT64", "shape": [-1]},
        ],
        "outputs": [
            {"name": "output_0", "datatype": "FP16", "shape": [-1, 3]},
            {"name": "output_1", "datatype": "INT64", "shape": [-1]},
            {"name": "output_2", "datatype": "FP32", "shape": [-1, 3]},
            {"name": "output_3", "datatype": "BOOL", "shape": [-1]},
        ],
    }
    assert client.get_model_metadata("two", "1.0", headers=AUTH) == metadata
    config = client.get_model_config("two", headers=AUTH)
    assert config["input"][1] == {"name": "b", "data_type": "TYPE_INT64", "dims": [-1]}
    assert config["max_batch_size"] == 0


def check_a_handler_without_a_signature():
    metadata = client.get_model_metadata("mirror", headers=AUTH)
    assert (metadata["inputs"], metadata["outputs"], metadata["platform"]) == ([], [], "msx_python")


def check_tensors_of_a_mindir():
    for sent_binary in (True, False):
        for outputs in (None, [triton.InferRequestedOutput(name, binary_data=sent_binary) for name in WANTED]):
            result = infer("two", two(sent_binary), outputs=outputs, request_id="7")
            response = result.get_response()
            assert (response["id"], response["model_name"], response["model_version"]) == ("7", "two", "1.0")
            for name, wanted in WANTED.items():
                found = result.as_numpy(name)
                assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape), name
                assert np.array_equal(found, wanted), name


def check_only_the_outputs_that_were_asked_for():
    outputs = [
        triton.InferRequestedOutput("output_2", binary_data=True),
        triton.InferRequestedOutput("output_1", binary_data=False),
    ]
    result = infer("two", two(), outputs=outputs, model_version="1.0")
    first, second = result.get_response()["outputs"]
    assert (first["name"], first["parameters"]) == ("output_2", {"binary_data_size": 24})
    assert (second["name"], second["data"]) == ("output_1", [7, -8])
    assert result.as_numpy("output_0") is None


def check_classification():
    outputs = [triton.InferRequestedOutput("output_2", class_count=2), triton.InferRequestedOutput("output_1")]
    result = infer("two", two(), outputs=outputs)
    assert result.as_numpy("output_2").tolist() == [
        [b"4.000000:2", b"2.000000:1"],
        [b"10.000000:2", b"8.000000:1"],
    ]
    assert result.as_numpy("output_1").tolist() == [7, -8]


def check_extensions_that_are_not_served():
    for call, remedy in (
        (lambda: client.register_system_shared_memory("r", "/key", 8, headers=AUTH), "send and take tensors as bytes"),
        (lambda: client.get_system_shared_memory_status(headers=AUTH), "send and take tensors as bytes"),
        (lambda: client.unregister_system_shared_memory("r", headers=AUTH), "send and take tensors as bytes"),
        (lambda: client.register_cuda_shared_memory("r", b"", 0, 8, headers=AUTH), "send and take tensors as bytes"),
        (lambda: client.get_trace_settings("two", headers=AUTH), "/v2/models/stats"),
        (lambda: client.update_trace_settings(settings={}, headers=AUTH), "/v2/models/stats"),
        (lambda: client.get_log_settings(headers=AUTH), "--log-config"),
    ):
        refused(call, 501, remedy)


def check_every_data_type():
    for datatype, dtype in DTYPES.items():
        array = np.array([[0, 1, 1]], dtype) if datatype == "BOOL" else np.array([[0, 1, 100]], dtype)
        for binary in (True, False):
            for wanted in (True, False):
                outputs = [triton.InferRequestedOutput("x", binary_data=wanted)]
                found = infer("mirror", [tensor("x", array, datatype, binary)], outputs=outputs).as_numpy("x")
                assert found.dtype == array.dtype, datatype
                assert np.array_equal(found, array), datatype


def check_half_floats():
    half = np.array([1.5, -2.25, np.inf], np.float16)
    assert np.array_equal(infer("mirror", [tensor("x", half, "FP16")]).as_numpy("x"), half)
    brain = np.array([1.5, -2.25, np.inf], ml_dtypes.bfloat16)
    assert np.array_equal(infer("mirror", [tensor("x", brain, "BF16")]).as_numpy("x"), brain)


def check_bytes():
    array = np.array([[b"", "é".encode(), b"\0\xff"]], object)
    assert infer("mirror", [tensor("x", array, "BYTES")]).as_numpy("x").tolist() == array.tolist()
    text = np.array(["é", "b"], object)
    outputs = [triton.InferRequestedOutput("x", binary_data=False)]
    result = infer("mirror", [tensor("x", text, "BYTES", binary=False)], outputs=outputs)
    assert result.get_response()["outputs"][0]["data"] == ["é", "b"]
    refused(
        lambda: infer("mirror", [tensor("x", array, "BYTES")], outputs=outputs),
        400,
        "output 'x' has bytes that JSON cannot carry: ask for it with binary_data",
    )


def check_empty_tensors():
    for binary in (True, False):
        array = np.empty((0, 3), np.float32)
        assert infer("mirror", [tensor("x", array, "FP32", binary)]).as_numpy("x").shape == (0, 3)


def check_the_handler_sees_arrays_for_bytes_and_lists_for_json():
    inputs = [tensor("x", A, "FP32", True), tensor("y", A, "FP32", False)]
    parameters = infer("mirror", inputs, parameters={"mine": 3}, priority=1).get_response()["parameters"]
    assert parameters == {"mine": 3, "priority": 1, "kind_x": "ndarray", "kind_y": "list"}


def check_compression():
    array = np.ones((3000, 3), np.float32)
    for sent in ("gzip", "deflate", None):
        for received in ("gzip", "deflate", None):
            for binary in (True, False):
                result = infer(
                    "mirror",
                    [tensor("x", array, "FP32", binary)],
                    request_compression_algorithm=sent,
                    response_compression_algorithm=received,
                )
                assert np.array_equal(result.as_numpy("x"), array)


def check_compressed_replies_are_small():
    body = {"inputs": [{"name": "x", "shape": [9000], "datatype": "INT32", "data": [1] * 9000}]}
    status, headers, data = post(
        "/v2/models/mirror/infer", gzip.compress(json.dumps(body).encode()),
        {"Content-Encoding": "gzip", "Accept-Encoding": "deflate;q=0.5, gzip", "Content-Type": "text/plain"},
    )  # fmt: skip
    assert (status, headers["content-encoding"]) == (200, "gzip")
    assert len(data) < 2000
    assert json.loads(gzip.decompress(data))["outputs"][0]["data"] == [1] * 9000


def check_bodies_that_cannot_be_decompressed():
    path = "/v2/models/mirror/infer"
    bomb = gzip.compress(bytes(50_000_000), 9)
    for body, encoding, status, message in (
        (bomb, "gzip", 413, "decompressed, is larger than max_request_size (6553500 bytes)"),
        (b"nonsense", "gzip", 400, "The body is not gzip"),
        (gzip.compress(b"{}")[:-4], "gzip", 400, "it ends too early"),
        (gzip.compress(b"{}") + b"x", "gzip", 400, "it goes on after its end"),
        (b"{}", "br", 415, "Content-Encoding 'br' is not known here"),
    ):
        found, _, data = post(path, body, {"Content-Encoding": encoding})
        assert found == status, data
        assert message in json.loads(data)["error"]


def check_a_raw_body():
    raw = {"Inference-Header-Content-Length": "0", "Content-Type": "application/octet-stream"}
    status, headers, data = post("/v2/models/mirror/infer", b"any\0thing", raw)
    size = int(headers["inference-header-content-length"])
    head = json.loads(data[:size])
    assert status == 200
    assert head["outputs"][0]["datatype"] == "BYTES"
    assert data[size:] == b"\x09\0\0\0any\0thing"
    status, _, data = post("/v2/models/two/infer", b"1234", raw)
    assert status == 400
    assert "is for models with one input; this one takes 'a', 'b'" in json.loads(data)["error"]


def check_what_is_wrong_is_named():
    bad = tensor("a", A, "FP32")
    bad._raw_data = bad._raw_data[:-4]
    bad._parameters["binary_data_size"] = 20
    for call, status, message in (
        (lambda: infer("none", two()), 404, "Model not found: none"),
        (lambda: infer("two", two(), model_version="9"), 404, "Model version: 9 does not exist for model: two"),
        (lambda: infer("two", [bad, two()[1]]), 400, "input 'a': FP32 of shape [2, 3] takes 24 bytes, not 20"),
        (lambda: infer("two", two()[:1]), 400, "missing input 'b'"),
        (lambda: infer("two", [*two(), tensor("c", A, "FP32")]), 400, "unknown input 'c'"),
        (lambda: infer("two", two(a=A.reshape(3, 2))), 400, "shape [3, 2] does not fit the model's [-1, 3]"),
        (lambda: infer("two", [tensor("a", A.astype(np.int64), "INT64"), two()[1]]), 400, "the model takes FP32"),
        (
            lambda: infer("two", two(), outputs=[triton.InferRequestedOutput("z")]),
            400,
            "unknown output 'z'; this model gives output_0, output_1",
        ),
        (
            lambda: infer("two", two(), outputs=[triton.InferRequestedOutput("output_3", class_count=2)]),
            400,
            "output 'output_3': classification is for numbers",
        ),
        (lambda: infer("mirror", [tensor("refuse", A, "FP32")]), 400, "refuse: not this one"),
        (lambda: infer("mirror", [tensor("fail", A, "FP32")]), 500, "Prediction failed: ValueError: it broke"),
        (lambda: infer("repeat", [tensor("count", B[:1] // 2, "INT64")]), 501, "use ModelStreamInfer"),
        (lambda: client.get_model_metadata("none", headers=AUTH), 404, "Model not found: none"),
    ):
        refused(call, status, message)


def check_bodies_that_are_no_requests():
    for body, message in (
        (b"", "the request is not JSON"),
        (b"{", "the request is not JSON"),
        (b"[]", "must be a JSON object"),
        (b"{}", "has no list 'inputs'"),
    ):
        status, headers, data = post("/v2/models/mirror/infer", body, {"Content-Type": "application/json"})
        assert (status, headers["content-type"]) == (400, "application/json")
        assert message in json.loads(data)["error"]
    for path, method, status in (
        ("/v2/models/mirror/infer", "GET", 405),
        ("/v2/models/mirror/nothing", "GET", 404),
        ("/v2/nothing", "GET", 404),
    ):
        request = urllib.request.Request(f"{URL}{path}", headers=AUTH, method=method)
        error = must.raises(urllib.error.HTTPError, lambda request=request: urllib.request.urlopen(request, timeout=60))
        assert error.code == status
        assert json.load(error)["error"]


def check_a_wrong_request_fails_alone_in_its_batch():
    calls = [
        client.async_infer("mirror", [tensor(name, A, "FP32")], headers=dict(AUTH))
        for name in ("x", "refuse", "x", "x", "refuse", "x")
    ]
    for number, call in enumerate(calls):
        if number in (1, 4):
            refused(call.get_result, 400, "refuse: not this one")
        else:
            assert np.array_equal(call.get_result().as_numpy("x"), A)


async def check_the_async_client():
    async with triton_aio.InferenceServerClient(ADDRESS, conn_timeout=120) as aio:
        assert await aio.is_model_ready("two", headers=AUTH)
        for binary in (True, False):
            inputs = [tensor("x", np.ones((500, 3), np.float32), "FP32", binary)]
            calls = [aio.infer("mirror", inputs, headers=dict(AUTH), request_id=str(n)) for n in range(10)]
            results = await asyncio.gather(*calls)
            assert [result.get_response()["id"] for result in results] == [str(n) for n in range(10)]
            assert all((result.as_numpy("x") == 1).all() for result in results)


def check_statistics():
    before = statistics("mirror")
    for _ in range(3):
        infer("mirror", [tensor("x", A, "FP32")])
    must.raises(InferenceServerException, lambda: infer("mirror", [tensor("refuse", A, "FP32")]))
    after = statistics("mirror")
    assert after["inference_count"] - before["inference_count"] == 3
    success, fail = after["inference_stats"]["success"], after["inference_stats"]["fail"]
    assert success["count"] - before["inference_stats"]["success"]["count"] == 3
    assert fail["count"] - before["inference_stats"]["fail"]["count"] == 1
    assert success["ns"] > 0
    assert after["last_inference"] > 1_700_000_000_000
    assert {batch["batch_size"] for batch in after["batch_stats"]} >= {1}
    everything = client.get_inference_statistics(headers=AUTH)["model_stats"]
    assert {"two", "mirror", "repeat"} <= {one["name"] for one in everything}
    refused(lambda: client.get_inference_statistics("none", headers=AUTH), 404, "Model not found")


def statistics(model):
    return client.get_inference_statistics(model, headers=AUTH)["model_stats"][0]


def check_the_repository():
    index = {one["name"]: one for one in client.get_model_repository_index(headers=AUTH)}
    assert index["two"] == {"name": "two", "version": "1.0", "state": "READY", "reason": ""}
    refused(lambda: client.unload_model("repeat", headers=AUTH), 401, "Token Authorization failed")
    client.unload_model("repeat", headers=MANAGE)
    assert not client.is_model_ready("repeat", headers=AUTH)
    index = {one["name"]: one for one in client.get_model_repository_index(headers=AUTH)}
    assert (index["repeat"]["state"], index["repeat"]["reason"]) == ("UNAVAILABLE", "unloaded")
    refused(lambda: infer("repeat", [tensor("count", B[:1], "INT64")]), 503, "has no worker")
    client.load_model("repeat", headers=MANAGE)
    assert client.is_model_ready("repeat", headers=AUTH)
    refused(lambda: client.load_model("none", headers=MANAGE), 404, "Model not found: none")
    refused(lambda: client.load_model("two", headers=MANAGE, config="{}"), 501, "Parameters of load are not served")


def check_an_archive_of_the_store_is_registered():
    index = {one["name"]: one for one in client.get_model_repository_index(headers=AUTH)}
    assert (index["unregistered"]["state"], index["unregistered"]["reason"]) == ("UNAVAILABLE", "not registered")
    client.load_model("unregistered", headers=MANAGE)
    assert client.is_model_ready("unregistered", headers=AUTH)
    assert np.array_equal(infer("unregistered", [tensor("x", A, "FP32")]).as_numpy("x"), A)
