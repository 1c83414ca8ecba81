"""Failures around the real vLLM: processes that are killed, memory that is not there, clients that leave."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.server import RunningServer, new_store, replaced, wait_until
from tests.vllm.generation import CONTEXT, ENGINE, GONE, RANK, WORKER, Generation, end_of, streams
from tests.vllm.served import LOAD, NEEDED, PYTHON, pack_vllm, run_vllm
from tests.vllm.tiny_model import make_tiny_model

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.long,
    pytest.mark.timeout(1200),
    pytest.mark.skipif(not PYTHON, reason=NEEDED),
]

KEYS = "responseTimeout: 20\nparallelType: custom\nparallelLevel: 2\n"
DRAINED = 3


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("failures")
    return pack_vllm(new_store(folder), "tiny", make_tiny_model(folder / "tiny", context=CONTEXT), KEYS)


@pytest.fixture(scope="module")
def running(archive: Path) -> Iterator[RunningServer]:
    with run_vllm(archive.parents[1], archive, properties=f"drain_timeout={DRAINED}\n") as server:
        yield server


@pytest.fixture
def server(running: RunningServer) -> RunningServer:
    """One whose model serves, whatever the test before has done."""
    running.wait_serving(LOAD)
    return running


def answers(server: RunningServer) -> bool:
    asked = {"model": "tiny", "prompt": "the sea", "max_tokens": 2, "temperature": 0}
    reply = server.inference.post("/v1/completions", json=asked)
    return reply.status_code == 200 and reply.json()["usage"]["completion_tokens"] == 2


def test_clients_that_leave(server: RunningServer) -> None:
    def running() -> float:
        return server.metric("vllm:num_requests_running")

    with streams(server, 3, model="tiny"):
        wait_until(lambda: running() == 3, "vLLM runs three", server.tail)
    wait_until(lambda: running() == 0, "vLLM has aborted them", server.tail)
    assert server.metric("msx_llm_running") == 0


def test_a_request_that_is_too_large(server: RunningServer) -> None:
    for asked, words in (
        ({"prompt": "a b " * CONTEXT, "max_tokens": 1}, f"maximum context length is {CONTEXT} tokens"),
        ({"prompt": "a", "max_tokens": CONTEXT}, f"maximum context length is {CONTEXT} tokens"),
    ):
        reply = server.inference.post("/v1/completions", json={"model": "tiny", **asked})
        assert (reply.status_code, reply.json()["error"]["code"]) == (400, "context_length_exceeded")
        assert words in reply.json()["error"]["message"]


@pytest.mark.parametrize(
    ("victim", "told"),
    [(ENGINE, "its log says why"), (RANK, "its log says why"), (WORKER, "was ended by signal 9")],
)
def test_a_kill_in_mid_stream(server: RunningServer, victim: str, told: str) -> None:
    before = Generation(server, "tiny")
    with streams(server, 4, model="tiny") as texts:
        os.kill(before.pid_of(victim), signal.SIGKILL)
        ends = [end_of(text) for text in texts]
    assert all(told in end for end in ends), ends
    before.wait_gone(server)
    wait_until(lambda: replaced(server.describe("tiny"), before.pid), "a new worker serves", server.tail, LOAD)
    assert answers(server)


def test_memory_that_is_not_there(server: RunningServer, archive: Path) -> None:
    model = make_tiny_model(archive.parents[1] / "large")
    large = pack_vllm(archive.parent, "large", model, **{"kv-cache-memory-bytes": "900G"})
    reply = server.register(large)
    assert reply.status_code == 500
    assert "kv-cache-memory-bytes" in reply.json()["message"]


def test_a_model_that_is_unregistered_while_it_streams(server: RunningServer, archive: Path) -> None:
    before = Generation(server, "tiny")
    with streams(server, 2, model="tiny") as texts:
        assert server.management.delete("/models/tiny").status_code == 200
        ends = [end_of(text) for text in texts]
    assert all(ends), ends
    before.wait_gone(server, LOAD)
    assert server.register(archive, startup_timeout=int(LOAD)).status_code == 200
    assert answers(server)


def test_a_server_that_is_stopped_while_it_streams(server: RunningServer) -> None:
    """The last of this file: it ends the server."""
    before = Generation(server, "tiny")
    with streams(server, 2, model="tiny") as texts:
        assert server.terminate() == 0
        ends = [end_of(text) for text in texts]
    assert all(ends), ends
    before.wait_gone(server, GONE)
