"""The Open Inference Protocol over REST. The protocol itself is in tests/contract/test_kserve_v2.py.

contract#kserve
"""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from tests.contract.torchserve.setup import Setup, serving
from tests.contract.torchserve.shapes import assert_common_headers
from tests.e2e.server import RunningServer

pytestmark = pytest.mark.e2e

SERVER = Setup(services=("report",), load=("report.mar",), properties="ts_open_inference_protocol=true\n")
REQUEST = {"id": "7", "inputs": [{"name": "a", "shape": [2], "datatype": "FP32", "data": [1.5, 2]}]}


def test_server_metadata(server: RunningServer) -> None:
    """`extenstion` is TorchServe's spelling; the protocol's own member is there, too."""
    reply = server.inference.get("/v2")
    assert reply.status_code == 200
    assert_common_headers(reply)
    found = reply.json()
    assert found["extenstion"] == ["kserve", "kubeflow"]
    assert {"name", "version", "extensions"} <= found.keys()


def test_health(server: RunningServer) -> None:
    assert server.inference.get("/v2/health/live").json() == {"live": True}
    assert server.inference.get("/v2/health/ready").json() == {"ready": True, "live": True}


def test_it_needs_no_switch_and_probes_need_no_token(tmp_path_factory: pytest.TempPathFactory) -> None:
    with serving(Setup(tokens=True), tmp_path_factory.mktemp("tokens")) as server:
        anonymous = httpx.Client(base_url=server.info["inference"], timeout=60)
        for path, status in (("/v2/health/live", 200), ("/v2/health/ready", 200), ("/v2", 401), ("/v2/models", 401)):
            reply = anonymous.get(path)
            assert reply.status_code == status, path
            assert status == 200 or list(reply.json()) == ["error"]
        assert server.inference.get("/v2/models").json() == {"models": []}
        anonymous.close()


def output_of(reply: httpx.Response) -> dict[str, Any]:
    """Report of the handler, which is not a tensor: its JSON is one value of BYTES."""
    assert reply.status_code == 200, reply.text
    found = reply.json()
    assert (found["model_name"], found["model_version"], found["id"]) == ("report", "1.0", "7")
    (output,) = found["outputs"]
    assert (output["name"], output["datatype"], output["shape"]) == ("output_0", "BYTES", [1])
    reported: dict[str, Any] = json.loads(output["data"][0])
    return reported


@pytest.mark.parametrize("path", ["/v2/models/report/infer", "/v2/models/report/versions/1.0/infer"])
def test_the_handler_gets_the_json_as_its_body(server: RunningServer, path: str) -> None:
    reported = output_of(server.inference.post(path, json=REQUEST))
    assert reported["fields"] == {"body": ["dict", REQUEST]}
    assert (reported["headers"]["explain"], reported["headers"]["url_path"]) == ("False", "")


def test_explain(server: RunningServer) -> None:
    explained = output_of(server.inference.post("/v2/models/report/explain", json=REQUEST))["explained"]
    assert explained["headers"]["explain"] == "True"


def test_any_other_body_is_a_prediction(server: RunningServer) -> None:
    """As under TorchServe, the handler's answer goes out as it is."""
    reply = server.inference.post("/v2/models/report/infer", content=b"\x89PNG", headers={"content-type": "image/png"})
    assert reply.json()["fields"] == {"body": ["bytearray", "\x89PNG"]}


@pytest.mark.parametrize(
    ("path", "error"),
    [
        ("/v2/models/none/infer", "Model not found: none"),
        ("/v2/models/report/versions/9/infer", "Model version: 9 does not exist for model: report"),
        ("/v2/models/report/nothing", "Requested resource is not found, please refer to API document."),
    ],
)
def test_errors(server: RunningServer, path: str, error: str) -> None:
    reply = server.inference.post(path, json=REQUEST)
    assert (reply.status_code, [*reply.json()]) == (404, ["error"])
    assert reply.json()["error"].startswith(error)
    assert reply.headers["x-request-id"]


@pytest.mark.parametrize("path", ["/v2/systemsharedmemory/region/r/register", "/v2/trace/setting", "/v2/logging"])
def test_extensions_that_are_not_served(server: RunningServer, path: str) -> None:
    """TorchServe: 404. The clients hear what to do instead."""
    reply = server.inference.post(path, json={})
    assert (reply.status_code, list(reply.json())) == (501, ["error"])
    assert " here: " in reply.json()["error"]
