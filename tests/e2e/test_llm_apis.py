"""The language-model routes of a real server, with workers that really come and go."""

from __future__ import annotations

import json
import os
import random
import signal
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import httpx
import pytest

from msx_frontend.apis.torchserve.grpc.inference import SERVICE
from msx_mindspore_serving.packages.mindspore_serving.client import MindsporeInferenceClient
from msx_net.grpc.messages import message_class
from tests.e2e.server import WATCHDOG, RunningServer, new_store, pack_service, run_server, wait_until
from tests.phrases import worker_died
from tests.retry import told_wait

pytestmark = pytest.mark.e2e

CROWDED = "maxConcurrent: 1\njobQueueSize: 1"
COMPLETIONS = "/v1/completions"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("llm")
    store = new_store(folder)
    pack_service("parrot", store, config="maxConcurrent: 64\naliases: [llama2]")
    pack_service("parrot", store, model="crowded", config=CROWDED)
    pack_service("parrot", store, model="hasty", config="maxConcurrent: 8\nclientTimeoutInMills: 3000")
    pack_service("echo", store)
    models = ("parrot.mar", "crowded.mar", "hasty.mar", "echo.mar")
    with run_server(folder, "--models", *models) as running:
        yield running


def complete(server: RunningServer, prompt: Any, model: str = "parrot", **body: Any) -> httpx.Response:
    return server.inference.post(COMPLETIONS, json={"model": model, "prompt": prompt, **body})


def test_llm_serving_by_its_client(server: RunningServer) -> None:
    """By an alias: its clients say llama2, whatever the model is called."""
    client = MindsporeInferenceClient(model_type="llama2", server_url=server.info["inference"])
    whole = client.generate("a b", max_new_tokens=8).generated_text
    *tokens, last = client.generate_stream("a b", do_sample=False, max_new_tokens=8)
    assert last.generated_text == whole != ""
    assert "".join(one.token.text for one in tokens if one.token) == whole


def parrot(server: RunningServer, model: str = "parrot") -> dict[str, int]:
    """How many of its requests run, and how many were cancelled."""
    described = server.management.get(f"/models/{model}", params={"customized": "true"}).json()[0]
    told: dict[str, int] = described["customizedMetadata"]
    return told


def leave(server: RunningServer, path: str, body: dict[str, Any]) -> socket.socket:
    """A request whose client leaves by closing the socket."""
    host, _, port = server.info["inference"].rpartition("//")[2].rpartition(":")
    sock = socket.create_connection((host, int(port)), 30)
    data = json.dumps(body).encode()
    sock.sendall(f"POST {path} HTTP/1.1\r\nHost: test\r\nContent-Length: {len(data)}\r\n\r\n".encode() + data)
    return sock


def until_broken(server: RunningServer, path: str, body: dict[str, Any]) -> list[Any]:
    """The events of a stream that must break."""
    with server.inference.stream("POST", path, json=body) as reply:
        lines = list(_lines(reply))
    return [json.loads(line[6:]) for line in lines if line.startswith("data: ")]


def _lines(reply: httpx.Response) -> Iterator[str]:
    try:
        yield from reply.iter_lines()
    except httpx.RemoteProtocolError:
        return
    pytest.fail("the stream ended as if it were whole")


def test_torchserves_routes_are_beside(server: RunningServer) -> None:
    assert server.inference.request("OPTIONS", "/").json()["openapi"] == "3.0.1"
    assert server.inference.get("/").json()["docs"] == "/docs"
    assert server.inference.get("/ping").json() == {"status": "Healthy"}
    assert server.predict("echo", b"x").content == b"x"
    assert server.inference.get("/health").status_code == 200


def test_describe_shows_what_a_model_offers(server: RunningServer) -> None:
    offered = server.describe("parrot")["capabilities"]
    assert (offered["generate"], offered["chat"], offered["model_id"]) == (True, True, "tests/parrot")
    assert "capabilities" not in server.describe("echo")


def test_a_model_that_is_none(server: RunningServer) -> None:
    refused = complete(server, "x", "echo")
    assert refused.status_code == 400
    assert refused.json()["error"]["message"] == (
        'Model "echo" does not generate text: its handler offers no such operation.'
    )
    listed = [model["id"] for model in server.inference.get("/v1/models").json()["data"]]
    assert listed == ["crowded", "hasty", "parrot", "llama2"]


def test_several_models_need_a_name(server: RunningServer) -> None:
    assert server.inference.post(COMPLETIONS, json={"prompt": "x"}).json()["error"]["param"] == "model"
    unknown = complete(server, "x", "dummy")
    assert (unknown.status_code, unknown.json()["error"]["code"]) == (404, "model_not_found")
    assert "The models that can generate text: crowded, hasty, parrot." in unknown.json()["error"]["message"]
    first = server.inference.post("/generate", json={"inputs": "x"})
    assert (first.json(), first.headers["x-msx-model"]) == ({"generated_text": "x"}, "parrot")
    named = server.inference.post("/generate", json={"inputs": "x", "model": "parrot"})
    assert named.json() == {"generated_text": "x"}
    assert server.inference.post("/v2/models/parrot/generate", json={"text_input": "x"}).json()["text_output"] == "x"


def test_streamed_events_come_one_by_one(server: RunningServer) -> None:
    body = {"model": "parrot", "prompt": "hang on", "stream": True}
    before = parrot(server)["cancelled"]
    with server.inference.stream("POST", COMPLETIONS, json=body) as reply:
        first = next(reply.iter_lines())  # the rest never comes
        assert json.loads(first[6:])["choices"][0]["text"] == "hang"
        assert reply.headers["content-type"] == "text/event-stream; charset=utf-8"
    wait_until(lambda: parrot(server)["cancelled"] == before + 1, "the stream is cancelled", server.tail)


@pytest.mark.parametrize(
    ("path", "body", "jobs"),
    [
        (COMPLETIONS, {"model": "parrot", "prompt": ["hang"] * 3, "n": 2}, 3),
        ("/v1/chat/completions", {"model": "parrot", "messages": [{"role": "user", "content": "hang"}]}, 1),
        ("/generate_stream", {"model": "parrot", "inputs": "hang"}, 1),
        ("/v2/models/parrot/generate", {"text_input": "hang"}, 1),
    ],
)
def test_a_client_that_leaves(server: RunningServer, path: str, body: dict[str, Any], jobs: int) -> None:
    before = parrot(server)["cancelled"]
    client = leave(server, path, body)
    wait_until(lambda: parrot(server)["running"] == jobs, "all of it runs", server.tail)
    client.close()
    wait_until(lambda: parrot(server) == {"running": 0, "cancelled": before + jobs}, "all of it ended", server.tail)


def test_clients_that_come_and_leave_in_disorder(server: RunningServer) -> None:
    """Some read a little, some nothing; nothing is left of any of them."""
    disorder = random.Random(7)  # the same each time

    def visit(number: int) -> None:
        path, body = calls[number]
        with leave(server, path, body) as client:
            client.settimeout(WATCHDOG)
            if number % 3:
                client.recv(100 * (number % 3))

    streams: list[tuple[str, dict[str, Any]]] = [
        (COMPLETIONS, {"model": "parrot", "prompt": ["hang on", "b c"], "n": 2, "stream": True}),
        (
            "/v1/chat/completions",
            {"model": "parrot", "messages": [{"role": "user", "content": "a b c"}], "stream": True},
        ),
        ("/generate_stream", {"model": "parrot", "inputs": "hang on"}),
        ("/predictions/parrot", {"prompt": "hang on"}),
        (COMPLETIONS, {"model": "parrot", "prompt": "a b", "stream": True}),
    ]
    calls = [disorder.choice(streams) for _ in range(120)]
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(visit, range(len(calls))))
    wait_until(lambda: parrot(server)["running"] == 0, "nothing runs", server.tail)
    wait_until(lambda: server.metric("msx_requests_in_flight", model="parrot") == 0, "nothing is held", server.tail)
    assert server.metric("msx_queue_depth", model="parrot") == 0
    assert complete(server, "x").json()["choices"][0]["text"] == "x"


def test_overload_is_told_before_any_header(server: RunningServer) -> None:
    running = leave(server, COMPLETIONS, {"model": "crowded", "prompt": "hang"})
    wait_until(lambda: server.metric("msx_requests_in_flight", model="crowded") == 1, "one runs", server.tail)
    waiting = leave(server, COMPLETIONS, {"model": "crowded", "prompt": "hang"})
    wait_until(lambda: server.metric("msx_queue_depth", model="crowded") == 1, "one waits", server.tail)
    refused = complete(server, "x", "crowded", stream=True)
    assert refused.status_code == 429
    assert told_wait(refused.headers)
    assert refused.json()["error"]["code"] == "rate_limit_exceeded"
    assert refused.json()["error"]["message"].startswith("The queue is full: jobQueueSize is 1 (model crowded).")
    assert server.metric("msx_requests_total", model="crowded", code="429") == 1
    tgi = server.inference.post("/generate_stream", json={"inputs": "x", "model": "crowded"})
    assert (tgi.status_code, tgi.json()["error_type"]) == (429, "overloaded")
    kserve = server.inference.post("/v2/models/crowded/generate", json={"text_input": "x"})
    assert (kserve.status_code, bool(told_wait(kserve.headers))) == (503, True)
    assert server.metric("msx_requests_total", model="crowded", code="429") == 2
    for client in (waiting, running):
        client.close()
    wait_until(lambda: complete(server, "x", "crowded").status_code == 200, "there is room again", server.tail)


def test_part_of_a_list_that_has_no_room_fails_all_of_it(server: RunningServer) -> None:
    refused = complete(server, ["hang", "x", "y", "z"], "crowded")
    assert refused.status_code == 429
    wait_until(lambda: complete(server, "x", "crowded").status_code == 200, "nothing is left of it", server.tail)


def test_time_that_is_up(server: RunningServer) -> None:
    late = complete(server, "hang", "hasty")
    assert (late.status_code, late.json()["error"]["code"]) == (504, "timeout")
    events = until_broken(server, COMPLETIONS, {"model": "hasty", "prompt": "hang on", "stream": True})
    assert events[-1]["error"]["code"] == "timeout"
    wait_until(lambda: parrot(server, "hasty") == {"running": 0, "cancelled": 2}, "both are cancelled", server.tail)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (COMPLETIONS, {"model": "parrot", "prompt": "fail-later b c", "stream": True}),
        ("/v1/responses", {"model": "parrot", "input": "fail-later b c", "stream": True}),
        ("/generate_stream", {"model": "parrot", "inputs": "fail-later b c"}),
        ("/v2/models/parrot/generate_stream", {"text_input": "fail-later b c"}),
    ],
)
def test_a_failure_in_a_stream(server: RunningServer, path: str, body: dict[str, Any]) -> None:
    *_, error = until_broken(server, path, body)
    assert "RuntimeError: told to" in json.dumps(error["error"])


def test_a_worker_that_dies(server: RunningServer) -> None:
    body = {"model": "parrot", "prompt": "hang on", "stream": True}
    with server.inference.stream("POST", COMPLETIONS, json=body) as reply:
        lines = _lines(reply)
        assert json.loads(next(lines)[6:])["choices"][0]["text"] == "hang"
        os.kill(server.worker_pids("parrot")[0], signal.SIGKILL)
        *_, last = (line for line in lines if line)
    assert json.loads(last[6:])["error"]["message"].startswith(worker_died("Rank 0 (pid "))
    wait_until(lambda: complete(server, "x").status_code == 200, "another one answers", server.tail)
    died = complete(server, "crash b c")
    assert (died.status_code, died.headers["x-should-retry"]) == (503, "false")
    assert died.json()["error"]["code"] == "worker_died"
    wait_until(lambda: complete(server, "x").status_code == 200, "another one answers", server.tail)


def test_a_plain_prediction_is_a_stream_of_text(server: RunningServer) -> None:
    reply = server.predict("parrot", {"prompt": "one two three", "max_new_tokens": 2})
    assert reply.text == "one two"
    assert reply.headers["content-type"] == "text/plain; charset=utf-8"
    form = server.inference.post("/predictions/parrot", data={"prompt": "one two", "max_tokens": "1"})
    assert form.text == "one"
    assert server.predict("parrot", "raw text", headers={"content-type": "text/plain"}).text == "raw text"
    wrong = server.predict("parrot", {"prompt": "x", "max_new_tokens": 0})
    assert (wrong.status_code, wrong.json()["message"]) == (400, "max_new_tokens: expected `int` >= 1")


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/completions", {"model": "parrot", "prompt": "priority"}),
        ("/v1/chat/completions", {"model": "parrot", "messages": [{"role": "user", "content": "priority"}]}),
        ("/generate", {"model": "parrot", "inputs": "priority"}),
        ("/v2/models/parrot/generate", {"text_input": "priority"}),
        ("/predictions/parrot", {"prompt": "priority"}),
    ],
)
def test_the_class_of_a_request_reaches_its_engine(server: RunningServer, path: str, body: dict[str, Any]) -> None:
    for name, priority in {"high": -1, "normal": 0, "low": 1}.items():
        reply = server.inference.post(path, json=body, headers={"x-msx-priority": name})
        assert f"priority {priority}" in reply.text


def test_the_same_by_grpc(server: RunningServer) -> None:
    request = message_class("org.pytorch.serve.grpc.inference.PredictionsRequest")
    response = message_class("org.pytorch.serve.grpc.inference.PredictionResponse")
    with grpc.insecure_channel(server.info["grpc_inference"]) as channel:
        path = f"/{SERVICE}/StreamPredictions"
        call = channel.unary_stream(path, request.SerializeToString, response.FromString)
        for fields in ({"data": b"one two"}, {"prompt": b"one two"}, {"data": b'{"prompt": "one two"}'}):
            replies = call(request(model_name="parrot", input=fields), timeout=WATCHDOG)
            assert [reply.prediction for reply in replies] == [b"one", b" two"]


def test_metrics(server: RunningServer) -> None:
    def tokens(kind: str) -> float:
        return server.metric(f"msx_llm_{kind}_tokens_total", model="parrot")

    before = tokens("prompt"), tokens("completion")
    firsts = server.metric("msx_llm_first_token_seconds_count", model="parrot")
    complete(server, "one two three", max_tokens=2, stream=True)
    complete(server, "one two three", max_tokens=2)
    assert (tokens("prompt"), tokens("completion")) == (before[0] + 6, before[1] + 4)
    assert server.metric("msx_llm_first_token_seconds_count", model="parrot") == firsts + 1
    assert server.metric("msx_llm_request_seconds_count", model="echo") == 0


def test_the_one_model_of_a_server_that_is_registered_later(tmp_path: Path) -> None:
    pack_service("parrot", new_store(tmp_path))
    with run_server(tmp_path, tokens=True) as server:
        assert server.inference.get("/health").status_code == 503
        assert server.inference.post("/", json={"inputs": "x"}).status_code == 405
        none = server.inference.post(COMPLETIONS, json={"prompt": "x"})
        assert (none.status_code, none.json()["error"]["code"]) == (404, "model_not_found")
        assert server.register(server.store / "parrot.mar").status_code == 200
        for name in ("parrot", "dummy", "tgi"):
            assert complete(server, "x", name).json()["model"] == "parrot"
        assert server.inference.post("/", json={"inputs": "x"}).json() == [{"generated_text": "x"}]
        stranger = httpx.post(f"{server.info['inference']}{COMPLETIONS}", json={"prompt": "x"})
        assert (stranger.status_code, stranger.json()["error"]["code"]) == (401, "invalid_api_key")
        assert httpx.get(f"{server.info['inference']}/health").status_code == 200
        assert server.management.delete("/models/parrot").status_code == 200
        assert complete(server, "x").status_code == 404
