"""Requests to a language model with two workers go to the one that has what they begin with, by each API."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import grpc
import pytest

from msx_frontend.apis.torchserve.grpc.inference import SERVICE
from msx_net.grpc.messages import message_class
from tests.e2e.server import RunningServer, new_store, pack_service, run_server, wait_until

pytestmark = pytest.mark.e2e

MODEL = "which_worker"
SESSION = "x-session-id"
Request = message_class("org.pytorch.serve.grpc.inference.PredictionsRequest")
Response = message_class("org.pytorch.serve.grpc.inference.PredictionResponse")

Ask = Callable[[RunningServer, str, dict[str, str]], str]
"""Prompt and headers; returns the worker."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("routing")
    config = "minWorkers: 2\nmaxWorkers: 3\nmaxConcurrent: 8\nrouting:\n  maxImbalance: 2"
    pack_service(MODEL, new_store(folder), config=config)
    with run_server(folder, "--models", f"{MODEL}.mar") as running:
        wait_until(lambda: running.metric("msx_workers_ready", model=MODEL) == 2, "both workers serve", running.tail)
        yield running


def post(server: RunningServer, path: str, body: dict[str, Any], headers: dict[str, str]) -> Any:
    reply = server.inference.post(path, json=body, headers=headers)
    assert reply.status_code == 200, reply.text
    return reply


def completion(server: RunningServer, prompt: str, headers: dict[str, str]) -> str:
    text: str = post(server, "/v1/completions", {"prompt": prompt}, headers).json()["choices"][0]["text"]
    return text


def chat(server: RunningServer, prompt: str, headers: dict[str, str]) -> str:
    body: dict[str, Any] = {"messages": [{"role": "user", "content": prompt}]}
    if SESSION in headers:
        body["prompt_cache_key"] = headers[SESSION]
    text: str = post(server, "/v1/chat/completions", body, {}).json()["choices"][0]["message"]["content"]
    return text


def tgi(server: RunningServer, prompt: str, headers: dict[str, str]) -> str:
    text: str = post(server, "/generate", {"inputs": prompt}, headers).json()["generated_text"]
    return text


def kserve(server: RunningServer, prompt: str, headers: dict[str, str]) -> str:
    text: str = post(server, f"/v2/models/{MODEL}/generate", {"text_input": prompt}, headers).json()["text_output"]
    return text


def prediction(server: RunningServer, prompt: str, headers: dict[str, str]) -> str:
    return str(post(server, f"/predictions/{MODEL}", {"prompt": prompt}, headers).text)


def by_grpc(server: RunningServer, prompt: str, headers: dict[str, str]) -> str:
    with grpc.insecure_channel(server.info["grpc_inference"]) as channel:
        call = channel.unary_unary(f"/{SERVICE}/Predictions", Request.SerializeToString, Response.FromString)
        request = Request(model_name=MODEL, input={"prompt": prompt.encode()})
        answer: bytes = call(request, metadata=tuple(headers.items()), timeout=30).prediction
        return answer.decode()


def history(of: str, turns: int) -> str:
    return " ".join(f"{of} {number}" for number in range(30 * turns))


@pytest.mark.parametrize("ask", [completion, chat, tgi, kserve, prediction, by_grpc])
def test_conversations_and_sessions_stay_with_their_workers(server: RunningServer, ask: Ask) -> None:
    """One after the other, so that all workers are as busy: the next new one goes to the other worker."""
    name = ask.__name__
    first = {one: ask(server, history(f"{name}{one}", 1), {}) for one in "ab"}
    assert len({*first.values()}) == 2
    for turn, one in itertools.product((2, 3), "bab"):
        assert ask(server, history(f"{name}{one}", turn), {}) == first[one]
    begun = {one: ask(server, f"{one}", {SESSION: f"{name}{one}"}) for one in "ab"}
    assert len({*begun.values()}) == 2
    for one in "abba":
        assert ask(server, f"again {one}", {SESSION: f"{name}{one}"}) == begun[one]


def test_what_is_counted(server: RunningServer) -> None:
    before = {by: counted(server, by) for by in ("session", "prefix", "load")}
    completion(server, history("counted", 1), {})
    completion(server, history("counted", 1), {SESSION: "counted"})
    completion(server, "other", {SESSION: "counted"})
    assert {by: counted(server, by) - count for by, count in before.items()} == {"load": 1, "prefix": 1, "session": 1}


def counted(server: RunningServer, by: str) -> float:
    return server.metric("msx_llm_routed_requests_total", model=MODEL, by=by)


def test_a_worker_that_is_too_busy_is_passed_over(server: RunningServer) -> None:
    headers = {SESSION: "busy"}
    with ExitStack() as waiting:
        held = [waiting.enter_context(stream_that_waits(server, headers)) for _ in range(3)]
        assert len({*held}) == 1, "up to maxImbalance a session keeps its worker"
        assert completion(server, "x", headers) != held[0]
    assert completion(server, "x", headers) != held[0], "the session has moved"


@contextmanager
def stream_that_waits(server: RunningServer, headers: dict[str, str]) -> Iterator[str]:
    """The worker that it is with. At the end its client leaves."""
    body = {"prompt": "wait", "stream": True}
    with server.inference.stream("POST", "/v1/completions", json=body, headers=headers) as reply:
        events = reply.iter_lines()  # to drop it would close the connection
        yield json.loads(next(events).removeprefix("data: "))["choices"][0]["text"]


def test_a_worker_that_has_ended_is_forgotten(server: RunningServer) -> None:
    prompt, headers = history("ends", 1), {SESSION: "ends"}
    first = completion(server, prompt, headers)
    assert completion(server, prompt, {}) == first
    server.kill_worker(int(first), MODEL)
    assert completion(server, prompt, headers) in map(str, server.worker_pids(MODEL))


def test_sessions_go_on_with_fewer_workers_and_with_more(server: RunningServer) -> None:
    for one in "ab":
        completion(server, "x", {SESSION: f"scaled {one}"})
    before = {by: counted(server, by) for by in ("session", "prefix", "load")}
    scale(server, 1)
    only = {completion(server, "x", {SESSION: f"scaled {one}"}) for one in "ab"}
    assert only == set(map(str, server.worker_pids(MODEL)))
    assert {by: counted(server, by) for by in before} == before, "one worker is not chosen"
    scale(server, 3)
    assert len({completion(server, "x", {SESSION: f"new {number}"}) for number in range(6)}) == 3


def scale(server: RunningServer, workers: int) -> None:
    asked: dict[str, Any] = {"min_worker": workers, "max_worker": workers, "synchronous": "true"}
    reply = server.management.put(f"/models/{MODEL}", params=asked)
    assert reply.status_code < 300, reply.text
