"""TorchServe's vLLM handler and its examples, with a stub of vLLM in an interpreter of the server."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from msx_torchserve import packages
from tests.e2e.server import (
    FREE_PORTS,
    WATCHDOG,
    RunningServer,
    client_of,
    new_store,
    run_server,
    server_environment,
    wait_until,
)
from tests.e2e.torchserve_vllm import example_config, packed_example
from tests.interpreters import install_package, new_interpreter, site_packages
from tests.vllm.conftest import STUB
from tests.vllm.tiny_model import make_tiny_model

pytestmark = pytest.mark.e2e

BASE = "/predictions/llama-8b-lora/1.0"


@pytest.fixture(scope="module")
def here() -> Iterator[Path]:
    """A folder whose path leaves room for that of a socket."""
    with tempfile.TemporaryDirectory(prefix="t-", dir="/tmp") as folder:
        yield Path(folder)


@pytest.fixture(scope="module")
def python(here: Path) -> Path:
    python, site = new_interpreter(here / "other"), site_packages(here / "other")
    install_package(site, "vllm", "0.32.0")
    (site / "stub.pth").write_text(f"{STUB}\n")
    return python


@pytest.fixture(scope="module")
def server(here: Path, python: Path) -> Iterator[RunningServer]:
    packed_example("llama-8b-lora", new_store(here), example_config("llama-8b-lora", "        swap_space: 4\n"))
    with run_server(here, "--models", "llama-8b-lora", properties=f"pythons=vllm={python}\n") as running:
        yield running


def post(server: RunningServer, path: str, **body: Any) -> Any:
    reply = server.inference.post(f"{BASE}/{path}", json=body)
    assert reply.status_code == 200, reply.text
    return reply.json()


@pytest.mark.parametrize("model", ["llama-8b-lora", "org/tiny-lora", "adapter_1", None])
def test_completions(server: RunningServer, model: str | None) -> None:
    named = {"model": model} if model else {}
    reply = post(server, "v1/completions", prompt="A robot", temperature=0.0, logprobs=1, max_tokens=3, **named)
    assert reply["usage"]["completion_tokens"] == 3
    assert reply["model"] == (model or "llama-8b-lora")


def test_chat(server: RunningServer) -> None:
    messages = [{"role": "user", "content": "a"}]
    reply = post(server, "v1/chat/completions", model="llama-8b-lora", messages=messages, max_tokens=2)
    assert reply["choices"][0]["message"]["role"] == "assistant"


def test_each_event_is_a_chunk_of_its_own(server: RunningServer) -> None:
    """TorchServe's client reads a chunk as one event."""
    body = {"model": "llama-8b-lora", "prompt": "A robot", "max_tokens": 3, "stream": True}
    with server.inference.stream("POST", f"{BASE}/v1/completions", json=body) as reply:
        assert reply.headers["transfer-encoding"] == "chunked"
        chunks = list(reply.iter_raw())
    assert chunks[-1] == b"data: [DONE]\n\n"
    assert all(json.loads(chunk.removeprefix(b"data: "))["choices"] for chunk in chunks[:-1])


def test_models(server: RunningServer) -> None:
    for reply in (server.inference.get(f"{BASE}/v1/models"), server.inference.post(f"{BASE}/v1/models")):
        assert [one["id"] for one in reply.json()["data"]] == ["llama-8b-lora", "org/tiny-lora", "adapter_1"]


def test_other_paths(server: RunningServer) -> None:
    reply = server.inference.post(f"{BASE}/v1/other", json={"prompt": "a"})
    assert (reply.status_code, reply.json()["message"]) == (404, "Unknown API endpoint: v1/other")
    assert post_status(server, "other-model") == 404


@pytest.mark.parametrize("path", [BASE, BASE.removesuffix("/1.0")])
def test_nothing_behind_the_version_is_a_plain_prediction(server: RunningServer, path: str) -> None:
    plain = server.inference.post(path, json={"prompt": "a", "max_new_tokens": 2})
    assert (plain.status_code, bool(plain.text)) == (200, True)


def test_v1_behind_the_name_is_a_version(server: RunningServer) -> None:
    path = BASE.removesuffix("1.0")
    reply = server.inference.post(f"{path}v1/completions", json={"prompt": "a"})
    assert (reply.status_code, reply.json()["type"]) == (404, "ModelVersionNotFoundException")
    assert server.inference.post(f"{path}/v1/completions", json={"prompt": "a"}).status_code == 200


def post_status(server: RunningServer, model: str) -> int:
    return server.inference.post(f"{BASE}/v1/completions", json={"model": model, "prompt": "a"}).status_code


def test_what_has_no_effect_is_in_the_log(server: RunningServer) -> None:
    log = server.log.read_text()
    assert "handler.vllm_engine_config.swap_space: has no effect: vLLM's engine has no such argument" in log
    assert "deviceType: gpu: vLLM has none in this worker, and computes on the CPU" in log
    assert server.describe("llama-8b-lora")["interpreter"]["name"] == "vllm"


def test_the_launcher(here: Path, python: Path) -> None:
    """It serves a folder until it is told to end, and leaves neither a server nor the model's folder."""
    place, model = here / "launched", make_tiny_model(here / "tiny")
    place.mkdir()
    (place / "config.properties").write_text(f"{FREE_PORTS}\npythons=vllm={python}\n")
    env = {**server_environment(place), "PYTHONPATH": str(Path(packages.__file__).parent), "http_proxy": ""}
    command = [sys.executable, "-m", "ts.llm_launcher", "--model_id", str(model), "--model_name", "tiny"]
    command += ["--vllm_engine.max_model_len", "200", "--disable_token_auth"]
    with subprocess.Popen(command, cwd=place, env=env, stdout=subprocess.PIPE, text=True) as launcher:
        try:
            assert any("Model server started" in line for line in launcher.stdout or ())
            (info,) = place.glob("**/stores/*/server.json")
            with client_of(json.loads(info.read_text())["inference"]) as client:
                wait_until(lambda: client.get("/readyz").status_code == 200, "the model serves")
                reply = client.post("/predictions/tiny/1.0/v1/completions", json={"prompt": "a", "max_tokens": 2})
            assert (reply.status_code, reply.json()["model"]) == (200, "tiny")
        finally:
            launcher.terminate()
            assert launcher.wait(WATCHDOG) == 0
    assert list((place / "model_store").glob("[!.]*")) == []
    assert not info.exists()
