"""KServe's first protocol.

contract#kserve
"""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from tests.contract.torchserve.setup import Setup
from tests.contract.torchserve.shapes import (
    METHOD_NOT_ALLOWED,
    NO_WORKER,
    assert_common_headers,
    assert_error,
    assert_json,
)
from tests.e2e.server import RunningServer, pack_service

pytestmark = pytest.mark.e2e


def prepare(store: Path) -> None:
    pack_service("report", store)
    pack_service("report", store, version="2.0", model="newer").rename(store / "report-2.mar")
    pack_service("echo", store)


SERVER = Setup(prepare=prepare, load=("report.mar",))


@pytest.mark.parametrize(("verb", "explain"), [("predict", "False"), ("explain", "True")])
@pytest.mark.parametrize("method", ["POST", "GET"])
def test_predict_and_explain(server: RunningServer, verb: str, explain: str, method: str) -> None:
    body = {"instances": [[1, 2]]}
    reply = server.inference.request(method, f"/v1/models/report:{verb}?k=3", json=body)
    assert reply.status_code == 200, reply.text
    found = reply.json()["explained"] if verb == "explain" else reply.json()
    assert found["fields"] == {"body": ["dict", body]}  # query parameters are not inputs
    assert found["headers"]["explain"] == explain
    assert_common_headers(reply)


def test_the_default_version_answers(server: RunningServer) -> None:
    assert server.register(Path("report-2.mar"), model_name="report").status_code == 200
    for version in ("2.0", "1.0"):
        assert server.management.put(f"/models/report/{version}/set-default").status_code == 200
        assert server.inference.post("/v1/models/report:predict", json={}).json()["version"] == version


@pytest.mark.parametrize("verb", ["predict", "explain"])
def test_an_unknown_model(server: RunningServer, verb: str) -> None:
    reply = server.inference.post(f"/v1/models/absent:{verb}")
    assert_error(reply, 404, "ModelNotFoundException", "Model not found: absent")


def test_a_model_without_workers(server: RunningServer) -> None:
    assert server.register(Path("echo.mar"), initial_workers=0).status_code == 200
    reply = server.inference.post("/v1/models/echo:predict")
    assert_error(reply, 503, "ServiceUnavailableException", NO_WORKER.format("echo"))
    for client in (server.inference, server.management):
        assert client.get("/v1/models/echo").json() == {"name": "echo", "ready": False}
    assert server.management.delete("/models/echo").status_code == 200


def test_readiness(server: RunningServer) -> None:
    """On the management listener, as upstream; where KServe looks for it, too."""
    assert_json(server.management.get("/v1/models/report"), 200, {"name": "report", "ready": True})
    assert_json(server.management.get("/v1/models/report/"), 200, {"name": "report", "ready": True})
    assert server.inference.get("/v1/models/report").json() == {"name": "report", "ready": True}


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
def test_readiness_is_a_get(server: RunningServer, method: str) -> None:
    reply = server.management.request(method, "/v1/models/report")
    assert_error(reply, 405, "MethodNotAllowedException", METHOD_NOT_ALLOWED)
    assert server.inference.request(method, "/v1/models/report").status_code == 405


def test_readiness_of_an_unknown_model(server: RunningServer) -> None:
    reply = server.management.get("/v1/models/absent")
    assert_error(reply, 404, "ModelNotFoundException", "Model not found: absent")
    assert server.inference.get("/v1/models/absent").status_code == 404


def test_the_list_is_openais_too(server: RunningServer) -> None:
    listed = server.inference.get("/v1/models").json()
    assert listed == {"object": "list", "data": [], "models": ["report"]}


def test_other_verbs(server: RunningServer) -> None:
    reply: httpx.Response = server.inference.post("/v1/models/report:train")
    assert reply.status_code in (404, 405)
