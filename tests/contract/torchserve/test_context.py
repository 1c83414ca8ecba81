"""The context of a handler.

contract#context
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.contract.torchserve.handlers import archive_of
from tests.contract.torchserve.setup import Setup
from tests.e2e.server import RunningServer, wait_until

pytestmark = pytest.mark.e2e

CONFIG = "handler:\n  profile: true\n"


def prepare(store: Path) -> None:
    archive_of("context_probe", store, config=CONFIG)
    archive_of("context_probe", store, name="bare")
    archive_of("measuring", store, config=CONFIG)


SERVER = Setup(
    prepare=prepare,
    load=("all",),
    properties="limit_max_image_pixels=false\nmetrics_mode=prometheus\nmodel_metrics_auto_detect=true\n",
)


def probe(server: RunningServer, model: str = "context_probe", **headers: str) -> tuple[httpx.Response, Any]:
    reply = server.inference.post(
        f"/predictions/{model}/1.0/some/path", json={"a": 1}, headers={"X-Probe": "yes", **headers}
    )
    return reply, reply.json()


def test_what_is_constant(server: RunningServer) -> None:
    told = probe(server)[1]
    assert told["model_name"] == told["manifest"]["modelName"] == "context_probe"
    assert told["model_yaml_config"] == {"handler": {"profile": True}}
    assert told["sequence"] == ["ts_request_sequence_id", "ts_request_sequence_start", "ts_request_sequence_end"]
    assert (told["stopping_criteria"], told["cache"], told["cl_socket"]) == (None, {}, None)
    assert probe(server, "bare")[1]["model_yaml_config"] == {}


def test_system_properties(server: RunningServer) -> None:
    """TorchServe's six, and `npu_id`."""
    properties = probe(server)[1]["system_properties"]
    assert Path(properties.pop("model_dir")).is_dir()
    assert properties.pop("server_version")
    assert properties == {
        "gpu_id": None,
        "npu_id": None,
        "batch_size": 1,
        "server_name": "MMS",
        "limit_max_image_pixels": False,
    }


def test_ids(server: RunningServer) -> None:
    reply, told = probe(server)
    id = reply.headers["x-request-id"]
    assert told["request_ids"] == {"0": id}
    assert told["get_request_id"] == [id, id]


def test_request_headers(server: RunningServer) -> None:
    """With `explain`, `url_path`, and an entry for the body with its content type."""
    told = probe(server)[1]
    headers = {name.lower(): value for name, value in told["all_headers"].items()}
    assert (told["header"], told["no_header"], told["property"]) == ("yes", None, "yes")
    assert (headers["x-probe"], headers["explain"], headers["url_path"]) == ("yes", "False", "some/path")
    assert headers["body"] == told["body_header"] == {"content-type": "application/json"}
    assert told["properties"] == told["all_headers"]
    assert told["sequence_id"] == ""
    assert probe(server, ts_request_sequence_id="s")[1]["sequence_id"] == "s"


def test_response_headers(server: RunningServer) -> None:
    reply, told = probe(server)
    expected = {"content-type": "application/json; charset=utf-8", "X-Set": "by the context"}
    expected["X-Added"] = "by the processor"
    assert expected.items() <= {name: reply.headers[name] for name in expected}.items()
    assert told["response_headers"] == told["processor_headers"] == expected
    assert told["content_type"] == "application/json; charset=utf-8"
    assert told["processor_header"] == ["by the processor", None]


@pytest.mark.parametrize(
    ("header", "phrase"), [("X-Status", "Chosen"), ("X-Report", "Reported"), ("X-All", "All")], ids=str
)
def test_response_status(server: RunningServer, header: str, phrase: str) -> None:
    reply, told = probe(server, **{header: "418"})
    assert (reply.status_code, reply.reason_phrase) == (418, phrase)
    assert told["response_status"] == told["processor_status"] == [418, phrase]


def test_status_is_200_by_default(server: RunningServer) -> None:
    reply, told = probe(server)
    assert reply.status_code == 200
    assert told["response_status"] == [200, ""]


def test_metrics(server: RunningServer) -> None:
    """contract#metrics: every call of `context.metrics`; what is wrong with one is logged, and fails no prediction."""
    assert server.predict("measuring", b"x").content == b"x"
    labels = {"ModelName": "measuring", "Level": "Model"}
    wait_until(lambda: server.metric("Counter_total", **labels) or server.metric("Counter", **labels), "they arrive")
    value = server.metric
    assert max(value("Counter_total", **labels), value("Counter", **labels)) == 2
    assert value("Time", step="one", **labels) == 3
    assert value("Size", **labels) == 4
    assert value("Percent", **labels) == 5
    assert value("Metric", **labels) == 6
    assert value("Cached_count", kind="a") == value("Cached_count", kind="b") == 1
    assert value("HandlerTime", **labels) > 0
    log = server.log.read_text()
    assert "metric Cached has the dimensions ['kind'], got ['too', 'many']" in log
    assert "counter Counter cannot go down: -5 is left out" in log


def test_prediction_time(server: RunningServer) -> None:
    """contract#metrics: of every handler; BaseHandler's steps with `handler: profile: true`."""
    probe(server)
    server.predict("measuring", b"x")
    names = ("PredictionTime", "ts_handler_preprocess", "ts_handler_inference", "ts_handler_postprocess")
    taken = lambda: all(server.metric(name, ModelName="measuring") > 0 for name in names[:1])  # noqa: E731
    wait_until(taken, "they arrive")
    probed = lambda: server.metric("PredictionTime", ModelName="context_probe", Level="Model") > 0  # noqa: E731
    wait_until(probed, "it arrives")
