"""A canary release: two versions of a model share its traffic, over every API, also after a restart."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest

from msx_frontend.apis.torchserve.grpc.inference import SERVICE
from msx_frontend.apis.traffic.grpc import SERVICE as TRAFFIC_SERVICE
from msx_net.grpc.messages import message_class
from tests.e2e.server import WATCHDOG, RunningServer, new_store, run_server
from tests.e2e.test_versions import ANSWERS, folder_archive

Request = message_class("org.pytorch.serve.grpc.inference.PredictionsRequest")
Response = message_class("org.pytorch.serve.grpc.inference.PredictionResponse")
Divide = message_class("msx.DivideTrafficRequest")
Model = message_class("msx.TrafficRequest")
Answer = message_class("msx.TrafficResponse")

pytestmark = pytest.mark.e2e

TRAFFIC = "/models/m/traffic"


def by_rest(server: RunningServer) -> str:
    return server.predict("m", b"x").text


def by_kserve(server: RunningServer) -> str:
    body = {"inputs": [{"name": "x", "shape": [1], "datatype": "BYTES", "data": ["x"]}]}
    return str(server.inference.post("/v2/models/m/infer", json=body).json()["outputs"][0]["data"][0])


def test_traffic(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    for number in ("1.0", "2.0"):
        folder_archive(store, f"v{number}", ANSWERS.format(answer=number), number)
    with run_server(tmp_path, "--models", "v1.0", "v2.0") as server:
        reply = server.management.put(TRAFFIC, json={"1.0": 90, "2.0": 10})
        assert reply.json()["status"] == 'Traffic of model "m" is divided: 1.0: 0.9, 2.0: 0.1'
        for ask in (by_rest, by_kserve):
            assert counted(server, ask) == {"1.0": 90, "2.0": 10}
        assert server.inference.post("/predictions/m/1.0", content=b"x").text == "1.0"
        assert server.describe("m", "2.0")["trafficShare"] == 0.1
        assert server.metric("msx_traffic_share", model="m", version="2.0") == 0.1
        refused = server.management.put(TRAFFIC, json={"3.0": 1})
        assert (refused.status_code, "3.0" in refused.json()["message"]) == (404, True)
    with run_server(tmp_path) as server:
        assert server.management.get(TRAFFIC).json()["weights"] == {"1.0": 90, "2.0": 10}
        assert counted(server, by_rest) == {"1.0": 90, "2.0": 10}
        assert server.management.delete(TRAFFIC).json()["status"].endswith("default version, 1.0")
        assert counted(server, by_rest, 10) == {"1.0": 10}


def counted(server: RunningServer, ask: Callable[[RunningServer], str], times: int = 100) -> Counter[str]:
    return Counter(ask(server) for _ in range(times))


def test_over_grpc_and_in_sequences(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    for number in ("1.0", "2.0"):
        folder = store / folder_archive(store, f"v{number}", ANSWERS.format(answer=number), number)
        manifest = json.loads((folder / "MAR-INF" / "MANIFEST.json").read_text())
        manifest["model"]["configFile"] = "model-config.yaml"
        (folder / "MAR-INF" / "MANIFEST.json").write_text(json.dumps(manifest))
        (folder / "model-config.yaml").write_text("sequenceMaxIdleMSec: 60000\n")
    with run_server(tmp_path, "--models", "v1.0", "v2.0") as server, open_channels(server) as (inference, management):
        said = call(management, "DivideTraffic", Divide(model_name="m", weights={"1.0": 1, "2.0": 1}))
        assert said == 'Traffic of model "m" is divided: 1.0: 0.5, 2.0: 0.5'
        asked = [(sequence, predict_in(inference, sequence)) for _ in range(4) for sequence in "abcd"]
        assert Counter(Counter(version for _, version in set(asked)).values()) == {2: 2}
        assert json.loads(call(management, "ShowTraffic", Model(model_name="m")))["shares"] == {"1.0": 0.5, "2.0": 0.5}
        assert call(management, "EndTraffic", Model(model_name="m")).endswith("default version, 1.0")
        assert dict(asked)["b"] == predict_in(inference, "b", "2.0") == "2.0"


@contextmanager
def open_channels(server: RunningServer) -> Iterator[tuple[grpc.Channel, grpc.Channel]]:
    with (
        grpc.insecure_channel(server.info["grpc_inference"]) as inference,
        grpc.insecure_channel(server.info["grpc_management"]) as management,
    ):
        yield inference, management


def call(channel: grpc.Channel, method: str, request: Any) -> str:
    target = f"/{TRAFFIC_SERVICE}/{method}"
    answer: str = channel.unary_unary(target, type(request).SerializeToString, Answer.FromString)(request).msg
    return answer


def predict_in(channel: grpc.Channel, sequence: str, version: str = "") -> str:
    """The answer to a request of a sequence."""
    target = f"/{SERVICE}/Predictions"
    ask = channel.unary_unary(target, Request.SerializeToString, Response.FromString)
    request = Request(model_name="m", model_version=version, input={"body": b"x"}, sequence_id=sequence)
    answer: str = ask(request, timeout=WATCHDOG).prediction.decode()
    return answer
