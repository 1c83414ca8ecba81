"""Aliases of models, by which every API finds them; metrics, keys and the state have the models' own names."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import grpc
import httpx
import pytest

from msx_archiver.servable import pack_servable
from msx_frontend.apis.torchserve.grpc.inference import SERVICE
from msx_net.grpc.messages import message_class
from tests.e2e.server import WATCHDOG, RunningServer, client_of, new_store, pack_service, run_server

pytestmark = pytest.mark.e2e

SERVABLE = """
from mindspore_serving.server import register

def double(x):
    return x * 2

@register.register_method(output_names=["y"])
def twice(x):
    y = register.add_stage(double, x, outputs_count=1)
    return y
"""
KSERVE = "/inference.GRPCInferenceService"
PLAIN, OF_HUB = "gpt-4", "org/name"
TENSOR = {"name": "x", "shape": [1], "datatype": "BYTES", "data": ["x"]}
KEYS = """
keys:
  - {name: one, key: key-of-tensors-1234567, kind: inference, models: [tensors]}
  - {name: operator, key: key-of-operator-12345, kind: [management, inference]}
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("aliases")
    store = new_store(folder)
    pack_service("tensors", store, function="mirror", config="aliases: [t-4, org/tensors]\n")
    (folder / "gate").touch()
    pack_service("rows", store, config=f"aliases: [r-4]\nsplitInstances: true\ngate: {folder / 'gate'}\n")
    pack_service("parrot", store, config=f"aliases: [{PLAIN}, {OF_HUB}]\nmaxConcurrent: 64\n")
    (folder / "net").mkdir()
    (folder / "net" / "servable_config.py").write_text(SERVABLE)
    pack_servable(folder / "net", None, store, config={"aliases": ["n-4", "org/net"]})
    with run_server(folder, "--models", "tensors.mar", "parrot.mar", "rows.mar", "net-1.mar") as running:
        yield running


def post(server: RunningServer, path: str, **body: Any) -> Any:
    reply = server.inference.post(path, json=body)
    assert reply.status_code == 200, reply.text
    return reply.json()


def events(server: RunningServer, path: str, **body: Any) -> list[dict[str, Any]]:
    with server.inference.stream("POST", path, json=body) as reply:
        lines = [line[6:] for line in reply.iter_lines() if line.startswith("data: ")]
    return [json.loads(line) for line in lines if line != "[DONE]"]


@pytest.mark.parametrize("name", ["tensors", "t-4", "org/tensors"])
def test_apis_of_tensors(server: RunningServer, name: str) -> None:
    part, inputs = quote(name, safe=""), {"inputs": [TENSOR]}
    for path in (f"/v2/models/{part}/infer", f"/v2/models/{part}/versions/1.0/infer"):
        told = post(server, path, **inputs)
        assert (told["model_name"], told["outputs"][0]["data"]) == (name, ["x"])
    binary = {"inputs": [TENSOR], "parameters": {"binary_data_output": True}}
    reply = server.inference.post(f"/v2/models/{part}/infer", json=binary)
    head = json.loads(reply.content[: int(reply.headers["inference-header-content-length"])])
    assert (head["model_name"], reply.content.endswith(b"\1\0\0\0x")) == (name, True)
    assert server.inference.get(f"/v2/models/{part}").json()["name"] == name
    assert server.inference.get(f"/v2/models/{part}/ready").json() == {"name": name, "ready": True}
    assert server.inference.get(f"/v2/models/{part}/stats").json()["model_stats"][0]["name"] == "tensors"
    assert server.inference.get(f"/v1/models/{part}").json() == {"name": name, "ready": True}
    for path in (f"/predictions/{part}", f"/predictions/{part}/1.0", f"/v1/models/{part}:predict", f"/{part}/predict"):
        assert server.inference.post(path, json=inputs).status_code == 200, path
    assert server.inference.post(f"/predictions/{part}/2.0", json={}).status_code == 404
    assert server.inference.options(f"/predictions/{part}").status_code == 200


@pytest.mark.parametrize("name", ["parrot", PLAIN, OF_HUB])
def test_apis_of_texts(server: RunningServer, name: str) -> None:
    part, said = quote(name, safe=""), [{"role": "user", "content": "one two"}]
    asked: dict[str, dict[str, Any]] = {
        "/v1/completions": {"model": name, "prompt": "one two"},
        "/v1/chat/completions": {"model": name, "messages": said},
        "/v1/responses": {"model": name, "input": "one two"},
        "/v1/embeddings": {"model": name, "input": "one"},
    }
    for path, body in asked.items():
        assert post(server, path, **body)["model"] == name, path
    for path in ("/v1/completions", "/v1/chat/completions"):
        assert {event["model"] for event in events(server, path, **asked[path], stream=True)} == {name}
    first, *_, last = events(server, "/v1/responses", **asked["/v1/responses"], stream=True)
    assert (first["response"]["model"], last["response"]["model"]) == (name, name)
    assert post(server, f"/v2/models/{part}/generate", text_input="one two")["model_name"] == name
    assert {one["model_name"] for one in events(server, f"/v2/models/{part}/generate_stream", text_input="a b")} == {
        name
    }
    assert post(server, "/generate", inputs="one two", model=name)["generated_text"] == "one two"
    assert post(server, "/tokenize", prompt="one two", model=name)["count"] == 2
    for path in (f"/v1/models/{name}", f"/v1/models/{part}"):
        listed = server.inference.get(path).json()
        assert (listed["id"], listed.get("root", "parrot"), listed["name"]) == (name, "parrot", name)


def test_lists(server: RunningServer) -> None:
    listed = server.inference.get("/v1/models").json()
    assert [one["id"] for one in listed["data"]] == ["parrot", PLAIN, OF_HUB]
    own = ["net", "parrot", "rows", "tensors"]
    assert listed["models"] == server.inference.get("/v2/models").json()["models"] == own
    assert [one["modelName"] for one in server.management.get("/models").json()["models"]] == own
    assert server.describe("parrot")["aliases"] == [PLAIN, OF_HUB]
    assert server.describe(quote(OF_HUB, safe=""))["modelName"] == "parrot"


@pytest.mark.parametrize("name", ["rows", "r-4"])
def test_instances_that_are_jobs(server: RunningServer, name: str) -> None:
    assert [row["row"] for row in post(server, f"/v1/models/{name}:predict", instances=[7, 8])["predictions"]] == [7, 8]


def test_a_method(server: RunningServer) -> None:
    assert server.predict("r-4:double", b"4").text == server.predict("rows:double", b"4").text


@pytest.mark.parametrize("name", ["net", "n-4"])
def test_mindspore_serving(server: RunningServer, name: str) -> None:
    assert post(server, f"/model/{name}:twice", instances=[{"x": 2}]) == {"instances": [{"y": 4}]}


@pytest.mark.parametrize("name", ["t-4", "org/tensors"])
def test_grpc(server: RunningServer, name: str) -> None:
    tensor = {"name": "x", "shape": [1], "datatype": "BYTES", "contents": {"bytes_contents": [b"x"]}}
    request = message_class("inference.ModelInferRequest")(model_name=name, inputs=[tensor])
    with grpc.insecure_channel(server.info["grpc_inference"]) as channel:
        told = called(channel, f"{KSERVE}/ModelInfer", request, "inference.ModelInferResponse")
        assert (told.model_name, told.raw_output_contents) == (name, [b"\1\0\0\0x"])
        stream = channel.stream_stream(f"{KSERVE}/ModelStreamInfer", *codecs("inference.ModelStreamInferResponse"))
        assert [one.infer_response.model_name for one in stream(iter([request]), timeout=WATCHDOG)] == [name]
        health = message_class("grpc.health.v1.HealthCheckRequest")(service=name)
        found = called(channel, "/grpc.health.v1.Health/Check", health, "grpc.health.v1.HealthCheckResponse")
        assert found.status == found.SERVING


@pytest.mark.parametrize("name", [PLAIN, OF_HUB])
@pytest.mark.parametrize("version", ["", "1.0"])
def test_torchserves_grpc(server: RunningServer, name: str, version: str) -> None:
    members = {"model_name": name, "model_version": version, "input": {"prompt": b"one two"}}
    request = message_class("org.pytorch.serve.grpc.inference.PredictionsRequest")(**members)
    answer = "org.pytorch.serve.grpc.inference.PredictionResponse"
    with grpc.insecure_channel(server.info["grpc_inference"]) as channel:
        assert called(channel, f"/{SERVICE}/Predictions", request, answer).prediction == b"one two"
        stream = channel.unary_stream(f"/{SERVICE}/StreamPredictions", *codecs(answer))
        assert b"".join(one.prediction for one in stream(request, timeout=WATCHDOG)) == b"one two"


def codecs(answer: str) -> tuple[Callable[[Any], bytes], Callable[[bytes], Any]]:
    return lambda request: bytes(request.SerializeToString()), message_class(answer).FromString


def called(channel: grpc.Channel, target: str, request: Any, answer: str) -> Any:
    return channel.unary_unary(target, *codecs(answer))(request, timeout=WATCHDOG)


def test_metrics_have_the_own_names(server: RunningServer) -> None:
    before = server.metric("msx_requests_total", model="tensors")
    post(server, "/v2/models/org%2Ftensors/infer", inputs=[TENSOR])
    assert server.metric("msx_requests_total", model="tensors") == before + 1
    assert not any(server.metric("msx_requests_total", model=name) for name in ("t-4", "org/tensors", PLAIN))


def test_calls_that_change_a_model_name_it(server: RunningServer) -> None:
    calls: dict[str, Callable[[str], httpx.Response]] = {
        f"/models/{PLAIN}": server.management.delete,
        f"/models/{PLAIN}?min_worker=0": server.management.put,
        f"/models/{PLAIN}/1.0/set-default": server.management.put,
        f"/v2/repository/models/{PLAIN}/unload": server.inference.post,
    }
    for path, call in calls.items():
        reply = call(path)
        assert reply.status_code == 404, path
        assert f"{PLAIN}, which is an alias: a call that changes model parrot names the model itself" in reply.text


def test_replaced_and_restarted(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    pack_service("echo", store, config="aliases: [packed]\n")
    pack_service("echo", store, model="other")
    with run_server(tmp_path, "--models", "echo.mar", "other.mar") as server:

        def put(model: str, *names: str) -> tuple[int, str]:
            reply = server.management.put(f"/models/{model}/aliases", json={"aliases": names})
            return reply.status_code, reply.json()["status" if reply.status_code == 200 else "message"]

        assert put("other", "packed")[0] == 409
        assert put("echo", "gpt-4", "org/name") == (200, 'Model "echo" has the aliases gpt-4, org/name')
        assert server.predict("packed", b"x").status_code == 404
        assert put("other", "packed")[0] == 200
        assert put("other", "echo", "packed")[0] == 409
        assert put("other", "org/name")[0] == 409
    pack_service("echo", store, model="packed")
    with run_server(tmp_path) as server:
        assert server.describe("echo")["aliases"] == ["gpt-4", "org/name"]
        assert [server.predict(name, b"x").text for name in ("gpt-4", "org%2Fname", "packed")] == ["x"] * 3
        refused = server.register(store / "packed.mar")
        assert (refused.status_code, "packed is an alias of model other" in refused.text) == (409, True)
        assert server.management.delete("/models/other").status_code == 200
        assert server.predict("packed", b"x").status_code == 404
        assert server.register(store / "packed.mar").status_code == 200


def test_keys(tmp_path: Path) -> None:
    """A connection that has kept a key sees that the alias has moved."""
    pack_service("tensors", new_store(tmp_path), function="mirror", config="aliases: [a]\n")
    pack_service("echo", tmp_path / "store")
    keys = tmp_path / "keys.yaml"
    keys.write_text(KEYS)
    keys.chmod(0o600)
    body = {"inputs": [TENSOR]}
    properties = f"api_keys_file={keys}\n"
    with run_server(
        tmp_path, "--models", "tensors.mar", "echo.mar", properties=properties, tokens=True, ready=False
    ) as server:
        one = client_of(server.info["inference"], "key-of-tensors-1234567")
        operator = client_of(server.info["management"], "key-of-operator-12345")
        with one, operator:
            while one.get("/v2/models/a/ready").status_code != 200:
                pass
            assert one.post("/v2/models/a/infer", json=body).status_code == 200
            for model, names in (("tensors", []), ("echo", ["a"])):
                assert operator.put(f"/models/{model}/aliases", json={"aliases": names}).status_code == 200
            refused = one.post("/v2/models/a/infer", json=body)
            assert (refused.status_code, "is not for model a, but for: tensors" in refused.text) == (403, True)
