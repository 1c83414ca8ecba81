"""Inference over REST.

contract#inference
"""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.contract.torchserve.raw import connected
from tests.contract.torchserve.setup import Setup, serving
from tests.contract.torchserve.shapes import (
    NO_WORKER,
    RESOURCE_NOT_FOUND,
    assert_common_headers,
    assert_error,
    assert_status,
)
from tests.e2e.server import RunningServer, pack_service, wait_until
from tests.retry import told_wait

pytestmark = pytest.mark.e2e


def prepare(store: Path) -> None:
    for name in ("report", "headers", "stream_error_midway", "prediction_error", "gated_stream", "slow"):
        pack_service(name, store, function="generator" if name == "gated_stream" else "")
    pack_service("report", store, version="2.0", model="two").rename(store / "report-2.mar")
    pack_service("slow", store, model="one_place", config="jobQueueSize: 1\n")
    pack_service("slow", store, model="tickets", config="useJobTicket: true\n")


LOADED = ("report", "headers", "stream_error_midway", "prediction_error", "gated_stream", "one_place", "tickets")
SERVER = Setup(prepare=prepare, load=tuple(f"{name}.mar" for name in LOADED))


@pytest.fixture(scope="module")
def two_versions(server: RunningServer) -> RunningServer:
    """The model `report` in the versions 1.0 (the default) and 2.0."""
    assert server.register(Path("report-2.mar"), model_name="report").status_code == 200
    return server


def reported(reply: httpx.Response) -> dict[str, Any]:
    assert reply.status_code == 200, reply.text
    found: dict[str, Any] = reply.json()
    explained: dict[str, Any] = found.get("explained", found)
    return explained


def body_of(reply: httpx.Response) -> list[Any]:
    """The type and the value of the one field."""
    fields: dict[str, list[Any]] = reported(reply)["fields"]
    assert list(fields) == ["body"]
    return fields["body"]


# -- health --


def test_ping(server: RunningServer) -> None:
    assert_status(server.inference.get("/ping"), 200, "Healthy")


def test_ping_of_a_model_without_workers(server: RunningServer) -> None:
    assert server.register(Path("slow.mar"), initial_workers=0).status_code == 200
    assert_status(server.inference.get("/ping"), 200, "Healthy")
    assert server.management.delete("/models/slow").status_code == 200


def test_ping_of_a_model_that_lost_a_worker_for_good(tmp_path: Path) -> None:
    """Fewer healthy workers than minWorkers, though others answer; only the default version counts."""

    def prepare_crash(store: Path) -> None:
        pack_service("crash", store, config="maxRetryTimeoutInSec: 0\nminWorkers: 2\nmaxWorkers: 2\n")

    with serving(Setup(prepare=prepare_crash, load=("crash.mar",)), tmp_path) as server:
        assert_status(server.inference.get("/ping"), 200, "Healthy")
        both_ready = lambda: {one["status"] for one in server.describe("crash")["workers"]} == {"READY"}  # noqa: E731
        wait_until(both_ready, "both workers are there", server.tail)
        assert server.predict("crash", b"exit").status_code == 500
        wait_until(lambda: server.inference.get("/ping").status_code == 500, "the worker is given up", server.tail)
        assert_status(server.inference.get("/ping"), 500, "Unhealthy")
        assert server.inference.get("/readyz").status_code == 200


# -- paths, url_path and explain --


@pytest.mark.parametrize(
    ("path", "version", "url_path"),
    [
        ("/predictions/report", "1.0", ""),
        ("/predictions/report/", "1.0", ""),
        ("/predictions/report/2.0", "2.0", ""),
        ("/predictions/report/2.0/a", "2.0", "a"),
        ("/predictions/report/2.0/v1/chat/completions", "2.0", "v1/chat/completions"),
        ("/predictions/report/2.0/a%20b", "2.0", "a b"),
        ("/predictions/report/2.0/a%2520b", "2.0", "a%20b"),
        ("/explanations/report", "1.0", ""),
        ("/explanations/report/2.0/x/y", "2.0", "x/y"),
    ],
)
def test_version_and_url_path(two_versions: RunningServer, path: str, version: str, url_path: str) -> None:
    reply = two_versions.inference.post(path, content=b"x")
    found = reported(reply)
    assert found["version"] == version
    assert found["headers"]["url_path"] == url_path
    explains = path.startswith("/explanations")
    assert found["headers"]["explain"] == str(explains)
    assert ("explained" in reply.json()) is explains


def test_query_parameters_of_a_prediction_are_ignored(server: RunningServer) -> None:
    assert body_of(server.inference.post("/predictions/report?k=3&body=4", content=b"x")) == ["bytearray", "x"]


def test_headers_of_the_client_reach_the_handler(server: RunningServer) -> None:
    assert reported(server.predict("report", b"x", headers={"X-Own": "7"}))["headers"]["x-own"] == "7"


@pytest.mark.parametrize("path", ["/predictions", "/predictions/", "/explanations"])
def test_no_model_in_the_path(server: RunningServer, path: str) -> None:
    assert_error(server.inference.post(path), 404, "ResourceNotFoundException", RESOURCE_NOT_FOUND)


# -- SageMaker and the older routes --


def test_invocations_by_query(server: RunningServer) -> None:
    found = reported(server.inference.post("/invocations?model_name=report&k=3", content=b"x"))
    assert found["fields"] == {
        "body": ["bytearray", "x"],
        "model_name": ["bytearray", "report"],
        "k": ["bytearray", "3"],
    }
    assert not {"explain", "url_path"} & found["headers"].keys()


def test_invocations_by_form(server: RunningServer) -> None:
    found = reported(server.inference.post("/invocations", data={"model_name": "report", "k": "3"}))
    assert found["fields"] == {"model_name": ["bytearray", "report"], "k": ["bytearray", "3"]}


def test_invocations_without_a_name(server: RunningServer) -> None:
    """More than one model was loaded at startup."""
    message = "Parameter model_name is required."
    assert_error(server.inference.post("/invocations", content=b"x"), 400, "BadRequestException", message)


def test_invocations_of_the_only_model(tmp_path: Path) -> None:
    """The model loaded at startup answers; others may have come since."""
    with serving(Setup(services=("report", "echo"), load=("report.mar",)), tmp_path) as server:
        assert server.register(Path("echo.mar")).status_code == 200
        assert body_of(server.inference.post("/invocations", content=b"x")) == ["bytearray", "x"]


@pytest.mark.parametrize(
    ("path", "version"),
    [("/models/report/invoke", "1.0"), ("/report/predict", "1.0"), ("/report/2.0/predict", "2.0")],
)
@pytest.mark.parametrize("method", ["GET", "POST", "PUT"])
def test_older_routes(two_versions: RunningServer, path: str, version: str, method: str) -> None:
    found = reported(two_versions.inference.request(method, f"{path}?k=3", content=b"x"))
    assert found["fields"] == {"body": ["bytearray", "x"], "k": ["bytearray", "3"]}
    assert found["version"] == version


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "PATCH"])
@pytest.mark.parametrize("path", ["/explanations/report", "/invocations?model_name=report"])
def test_explanations_and_invocations_ignore_the_method(server: RunningServer, path: str, method: str) -> None:
    assert reported(server.inference.request(method, path, content=b"x"))["fields"]["body"] == ["bytearray", "x"]


@pytest.mark.parametrize("path", ["/models/report/run", "/models/report", "/models", "/a/b/c/predict"])
def test_another_suffix(server: RunningServer, path: str) -> None:
    assert_error(server.inference.post(path), 404, "ResourceNotFoundException", RESOURCE_NOT_FOUND)


@pytest.mark.parametrize("path", ["/models/absent/invoke", "/absent/predict", "/invocations?model_name=absent"])
def test_older_routes_of_an_unknown_model(server: RunningServer, path: str) -> None:
    assert_error(server.inference.post(path), 404, "ModelNotFoundException", "Model not found: absent")


# -- the body as inputs --


@pytest.mark.parametrize(
    ("content", "content_type", "expected"),
    [
        (b"\x00\xff raw", None, ["bytearray", "\x00\xff raw"]),
        (b"\x00\xff raw", "application/octet-stream", ["bytearray", "\x00\xff raw"]),
        (b"\x89PNG", "image/png", ["bytearray", "\x89PNG"]),
        (b'{"a": [1, 2.5, null]}', "application/json", ["dict", {"a": [1, 2.5, None]}]),
        (b'"text"', "application/json", ["str", "text"]),
        (b"[1]", "application/json; charset=utf-8", ["list", [1]]),
        (b'{"a": 1', "application/json", ["bytearray", '{"a": 1']),
        (b"", "application/json", ["bytearray", ""]),
        (b"[1]", "Application/JSON", ["bytearray", "[1]"]),
        ("grüezi".encode(), "text/plain", ["str", "grüezi"]),
        (b"<p>", "text/html; charset=utf-8", ["str", "<p>"]),
        (b"\xff", "text/plain", ["bytearray", "\xff"]),
        (b"--x\r\nno boundary", "multipart/form-data", ["bytearray", "--x\r\nno boundary"]),
    ],
)
def test_decoding(server: RunningServer, content: bytes, content_type: str | None, expected: list[Any]) -> None:
    headers = {} if content_type is None else {"content-type": content_type}
    assert body_of(server.predict("report", content, headers=headers)) == expected


def test_get_without_a_body(server: RunningServer) -> None:
    assert body_of(server.inference.get("/predictions/report")) == ["bytearray", ""]


def test_a_chunked_upload(server: RunningServer) -> None:
    assert body_of(server.inference.post("/predictions/report", content=iter([b"a", b"b"]))) == ["bytearray", "ab"]


def test_a_form(server: RunningServer) -> None:
    """The last of two values of a name wins; fields have no content type."""
    reply = server.inference.post("/predictions/report", data={"a": ["1", "2"], "b": "[3]", "c": "ü &="})
    escaped = "ü &=".encode().decode("latin-1")
    assert reported(reply)["fields"] == {
        "a": ["bytearray", "2"],
        "b": ["bytearray", "[3]"],
        "c": ["bytearray", escaped],
    }


def test_multipart(server: RunningServer) -> None:
    """File parts keep their type; a field without a file name has none, whatever it says."""
    files: list[tuple[str, Any]] = [
        ("twice", (None, b"first")),
        ("twice", (None, b"second")),
        ("json", ("a.json", b'{"k": 3}', "application/json")),
        ("text", ("a.txt", b"hello", "text/plain")),
        ("bytes", ("a.bin", b"\x00", "application/octet-stream")),
        ("plain", (None, b"[1]", "application/json")),
    ]
    assert reported(server.inference.post("/predictions/report", files=files))["fields"] == {
        "twice": ["bytearray", "second"],
        "json": ["dict", {"k": 3}],
        "text": ["str", "hello"],
        "bytes": ["bytearray", "\x00"],
        "plain": ["bytearray", "[1]"],
    }


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "closing boundary --x--"),
        (b'--x\r\nContent-Disposition: form-data; name="a"\r\n\r\nbroken o', "closing boundary --x--"),
        (b"no boundary at all", "malformed"),
        (b"--x\r\nContent-Disposition: form-data\r\n\r\ny\r\n--x--\r\n", "a part has no name"),
        (b"--x\r\nContent-Type: text/plain\r\n\r\ny\r\n--x--\r\n", "a part has no name"),
    ],
)
def test_malformed_multipart(server: RunningServer, body: bytes, reason: str) -> None:
    """TorchServe gives the handler no fields; here the client is told what is wrong."""
    reply = server.predict("report", body, headers={"content-type": "multipart/form-data; boundary=x"})
    assert_error(reply, 400, "BadRequestException", "The multipart/form-data body is malformed", exact=False)
    assert reason in reply.json()["message"]


def test_decode_input_request_off(tmp_path: Path) -> None:
    setup = Setup(services=("report",), load=("report.mar",), properties="decode_input_request=false\n")
    with serving(setup, tmp_path) as server:
        for kind in ("application/json", "text/plain"):
            assert body_of(server.predict("report", b"[1]", headers={"content-type": kind})) == ["bytearray", "[1]"]


# -- the answer --


def answer_with(server: RunningServer, **order: Any) -> httpx.Response:
    return server.predict("headers", order)


def test_the_content_type_is_the_handlers_or_that_of_json(server: RunningServer) -> None:
    """TorchServe's JSON has none."""
    reply = server.predict("report", b"x")
    assert reply.headers["content-type"] == "application/json"
    assert_common_headers(reply)
    assert answer_with(server, type="image/png").headers["content-type"] == "image/png"
    for path in ("/explanations/report", "/models/report/invoke", "/v1/models/report:predict"):
        assert server.inference.post(path, content=b"x").headers["content-type"] == "application/json", path


def test_json_of_the_handler_is_indented_by_two(server: RunningServer) -> None:
    reply = server.predict("report", b"x")
    assert reply.text == json.dumps(reply.json(), indent=2)


@pytest.mark.parametrize("status", [200, 201, 302, 404, 418, 503])
def test_status_and_headers_of_the_handler(server: RunningServer, status: int) -> None:
    reply = answer_with(server, status=status, headers={"X-Own": "7"})
    assert (reply.status_code, reply.headers["x-own"]) == (status, "7")
    assert_common_headers(reply)


def test_an_error_that_the_handler_chose(server: RunningServer) -> None:
    assert_error(server.predict("prediction_error", b"451"), 451, "InternalServerException", "you asked for 451")


# -- streams --


def gated(folder: Path, count: int) -> bytes:
    return json.dumps({"count": count, "dir": str(folder)}).encode()


def test_each_message_is_one_chunk_at_once(server: RunningServer, tmp_path: Path) -> None:
    order = gated(tmp_path, 3)
    with connected(server.inference) as connection:
        head = f"POST /predictions/gated_stream HTTP/1.1\r\nhost: x\r\ncontent-length: {len(order)}\r\n\r\n"
        connection.send(head.encode() + order)
        line, headers = connection.head()
        assert line.startswith("HTTP/1.1 200")
        assert (headers["transfer-encoding"], headers["ts_stream_next"]) == ("chunked", "true")
        assert "content-length" not in headers
        assert "content-type" not in headers
        for number in (1, 2, 3):
            assert connection.chunk() == f"{number}\n".encode()
            (tmp_path / str(number + 1)).touch()  # only now the handler makes the next one
        assert connection.chunk() == b""


def test_whole_answers_have_no_ts_stream_next(server: RunningServer) -> None:
    assert "ts_stream_next" not in server.predict("report", b"x").headers


def test_an_error_after_the_first_chunk(server: RunningServer) -> None:
    """The client cannot take what it has for all of it."""
    with pytest.raises(httpx.RemoteProtocolError):
        server.predict("stream_error_midway")


# -- refusals --


def assert_refused(reply: httpx.Response, model: str, reason: str) -> None:
    assert_error(reply, 503, "ServiceUnavailableException", NO_WORKER.format(model), exact=False)
    assert reason in reply.json()["message"]


def test_no_worker(server: RunningServer) -> None:
    assert server.register(Path("slow.mar"), initial_workers=0).status_code == 200
    reply = server.predict("slow", {"seconds": 0})
    assert_error(reply, 503, "ServiceUnavailableException", NO_WORKER.format("slow"))
    assert told_wait(reply.headers)
    reply = server.predict("slow/1.0", {"seconds": 0})
    text = NO_WORKER.format("slow").replace('"slow" has', '"slow" Version 1.0 has')  # without TorchServe's stray quote
    assert_error(reply, 503, "ServiceUnavailableException", text)
    assert server.management.delete("/models/slow").status_code == 200


@pytest.mark.parametrize(
    ("model", "busy", "reason"),
    [("one_place", 2, "the queue is full: jobQueueSize is 1"), ("tickets", 1, "no job ticket is free")],
)
def test_no_room(server: RunningServer, tmp_path: Path, model: str, busy: int, reason: str) -> None:
    """The same text, at once, for a full queue and for a missing ticket; the cause is behind it."""
    order = json.dumps({"seconds": 3600, "mark": str(tmp_path / "mark")}).encode()
    head = f"POST /predictions/{model} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
    request = f"{head}content-length: {len(order)}\r\n\r\n".encode() + order
    with connected(server.inference) as first, connected(server.inference) as second:
        first.send(request)
        wait_until((tmp_path / "mark").exists, "the worker is busy", server.tail)
        if busy > 1:
            second.send(request)
            wait_until(lambda: server.describe(model)["jobQueueStatus"]["pendingRequests"] == 1, "the queue is full")
        reply = server.predict(model, {"seconds": 0})
        assert_refused(reply, model, reason)
        assert told_wait(reply.headers)
    short = {"seconds": 0.05}  # but too long for the next one to be handed on to a busy worker
    wait_until(lambda: server.predict(model, short).status_code == 200, "those who left are forgotten", server.tail)


def test_base64_in_json_is_the_handlers_matter(server: RunningServer) -> None:
    encoded = base64.b64encode(b"\x00").decode()
    assert body_of(server.predict("report", {"b64": encoded})) == ["dict", {"b64": encoded}]
