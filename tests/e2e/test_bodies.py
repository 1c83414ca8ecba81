"""Bodies that are not what they say, or not what the model takes: at a built-in handler, and at one of a user's."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from msx_net.grpc.messages import message_class
from tests.contract.kserve_server import pack_mindir
from tests.contract.torchserve.grpc_client import INFERENCE, failure, stub_of
from tests.e2e.server import WATCHDOG, RunningServer, new_store, pack_service, run_server

np = pytest.importorskip("numpy")
grpc = pytest.importorskip("grpc")

pytestmark = [pytest.mark.e2e, pytest.mark.mindspore]

JSON, RAW, FORM = "application/json", "application/octet-stream", "application/x-www-form-urlencoded"
ROWS = [[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]]
VALUES = np.array(ROWS, np.float32).tobytes()
MALFORMED = b"[[0.1,2,3,4.5000"
"""As long as a row of four values."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("bodies")
    store = new_store(folder)
    pack_mindir("dynamic", store)
    pack_service("norms", store)
    pack_service("norms", store, model="lenient", config="jsonBodies: lenient")
    with run_server(folder, "--models", "dynamic.mar", "norms.mar", "lenient.mar") as running:
        yield running


@pytest.fixture(scope="module")
def answer(server: RunningServer) -> Any:
    return server.predict("dynamic", ROWS).json()


def sent(server: RunningServer, model: str, body: bytes, stated: str | None = None) -> httpx.Response:
    return server.predict(model, body, headers={} if stated is None else {"content-type": stated})


def npy() -> bytes:
    file = io.BytesIO()
    np.save(file, np.array(ROWS, np.float32))
    return file.getvalue()


# -- a MindIR --


@pytest.mark.parametrize(
    ("body", "stated"),
    [(str(ROWS).encode(), None), (str(ROWS).encode(), "Application/JSON"), (VALUES, RAW), (npy(), FORM), (npy(), None)],
)
def test_a_stated_type_is_obeyed(server: RunningServer, answer: Any, body: bytes, stated: str | None) -> None:
    reply = sent(server, "dynamic", body, stated)
    assert reply.status_code == 200, reply.text
    binary = body.startswith(b"\x93NUMPY")
    assert (np.load(io.BytesIO(reply.content)).tolist() if binary else reply.json()) == answer


@pytest.mark.parametrize(
    ("body", "stated", "status", "words"),
    [
        (MALFORMED, JSON, 400, "is not valid JSON: line 1, column 17: expecting ',' delimiter"),
        (MALFORMED, "Application/JSON", 400, "is not valid JSON: line 1, column 17"),
        (MALFORMED, None, 400, "came without a content type and is not valid JSON: line 1, column 17"),
        (VALUES, None, 400, "send application/json, application/x-npy, application/octet-stream"),
        (str(ROWS).encode(), FORM, 415, "(what curl and urllib state unless they are told); send application/json"),
        (b"\x89PNG", "image/png", 415, "this model does not read image/png; send application/json"),
    ],
)
def test_what_cannot_be_read(server: RunningServer, body: bytes, stated: str | None, status: int, words: str) -> None:
    reply = sent(server, "dynamic", body, stated)
    assert (reply.status_code, words in reply.json()["message"]) == (status, True), reply.text


def test_parts_without_a_type_keep_bare_values(server: RunningServer, answer: Any) -> None:
    for part in (VALUES, str(ROWS).encode()):
        reply = server.inference.post("/predictions/dynamic", files={"x": (None, part)})
        assert reply.json() == {"output_0": answer}, reply.text


def test_grpc_keeps_bare_values(server: RunningServer, answer: Any) -> None:
    with stub_of(server, INFERENCE) as stub:
        for data in (VALUES, str(ROWS).encode()):
            reply = stub.Predictions(model_name="dynamic", input={"data": data}, options={"timeout": WATCHDOG})
            assert httpx.Response(200, content=reply.prediction).json() == answer
        assert "13 raw bytes" in failure(lambda: stub.Predictions(model_name="dynamic", input={"data": bytes(13)}))[1]


# -- a handler on our base class, with a signature --


def tensors(**changes: Any) -> dict[str, Any]:
    return {"inputs": [{"name": "rows", "datatype": "FP32", "shape": [1, 3], "data": [2, 3, 6], **changes}]}


def test_malformed_json_does_not_reach_the_handler(server: RunningServer) -> None:
    reply = sent(server, "norms", b"[1", JSON)
    assert reply.status_code == 400
    assert (
        reply.json()["message"]
        == "body (application/json) is not valid JSON: line 1, column 3: expecting ',' delimiter"
    )
    assert sent(server, "lenient", b"[1", JSON).json() == {"seen": "bytearray"}


WRONG = [
    ({"name": "row"}, "missing input 'rows' and unknown input 'row'; this model takes rows (FP32 [-1, 3])"),
    ({"datatype": "INT8"}, "input 'rows': datatype 'INT8', but the model takes FP32"),
    ({"shape": [3]}, "input 'rows': shape [3] does not fit the model's [-1, 3] (-1 is any size)"),
    ({"shape": [-1, 3]}, "input 'rows': 'shape' must be a list of sizes that fits [-1, 3]; it is [-1, 3]"),
    ({"shape": "x"}, "input 'rows': 'shape' must be a list of sizes that fits [-1, 3]; it is 'x'"),
    ({"shape": None}, "input 'rows': 'shape' must be a list of sizes that fits [-1, 3]; it is None"),
]


@pytest.mark.parametrize(("changes", "message_"), WRONG)
def test_a_signature_is_enforced(server: RunningServer, changes: dict[str, Any], message_: str) -> None:
    reply = server.inference.post("/v2/models/norms/infer", json=tensors(**changes))
    assert (reply.status_code, reply.json()) == (400, {"error": message_})
    reply = server.predict("norms", tensors(**changes))
    assert (reply.status_code, reply.json()["message"]) == (400, message_)


def test_what_fits_is_answered(server: RunningServer) -> None:
    reply = server.inference.post("/v2/models/norms/infer", json=tensors())
    assert reply.json()["outputs"] == [{"name": "norm", "datatype": "FP32", "shape": [1], "data": [7]}]
    assert server.predict("norms", [1]).json() == {"seen": "list"}


def test_a_signature_is_enforced_over_grpc(server: RunningServer) -> None:
    request, response = (message_class(f"inference.ModelInfer{kind}") for kind in ("Request", "Response"))
    with grpc.insecure_channel(server.info["grpc_inference"]) as channel:
        path = "/inference.GRPCInferenceService/ModelInfer"
        infer = channel.unary_unary(path, request.SerializeToString, response.FromString)
        asked = request(model_name="norms", raw_input_contents=[np.array([2, 3, 6], np.int8).tobytes()])
        asked.inputs.add(name="rows", datatype="INT8", shape=[1, 3])
        code, details = failure(lambda: infer(asked, timeout=WATCHDOG))
        assert (code, details) == ("INVALID_ARGUMENT", "input 'rows': datatype 'INT8', but the model takes FP32")


# -- bodies under the type that curl states by itself --


@pytest.mark.parametrize("body", [b'{"x": 1}', b"plain text", b"\x89PNG\r\n\x1a\n\0=&", b"\x89PNG" + b"&=" * 2000])
def test_the_sentence_names_curls_content_type(server: RunningServer, body: bytes) -> None:
    for model in ("norms", "lenient"):
        reply = sent(server, model, body, FORM)
        assert reply.status_code == 400, reply.text
        assert f"A body that comes as {FORM}, which curl and urllib state" in reply.json()["message"]
