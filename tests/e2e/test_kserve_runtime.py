"""A server started as deploy/kserve's runtimes start it, on a folder as KServe's storage initializer leaves it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import httpx
import numpy as np
import psutil
import pytest
import yaml

from msx_frontend.net.grpc.messages import message_class
from tests.confined import confined
from tests.deploy.command_line import image_environment
from tests.e2e.server import WATCHDOG, pack_service, wait_until

pytestmark = pytest.mark.e2e

RUNTIMES = Path(__file__).parents[2] / "deploy" / "kserve" / "clusterservingruntime.yaml"
LLAMA = Path(__file__).parents[2] / "examples" / "llama"
PROPERTIES = """
inference_address=http://0.0.0.0:8085
management_address=http://0.0.0.0:8085
metrics_address=http://0.0.0.0:8082
grpc_inference_port=7070
grpc_management_port=7071
enable_envvars_config=true
enable_metrics_api=true
metrics_format=prometheus
NUM_WORKERS=1
number_of_netty_threads=4
job_queue_size=10
model_store=/mnt/models/model-store
model_snapshot={"name":"startup.cfg","modelCount":1,"models":{"mnist":{"1.0":{"defaultVersion":true,"marName":\
"mnist.mar","minWorkers":1,"maxWorkers":5,"batchSize":1,"maxBatchDelay":10,"responseTimeout":120}}}}
"""
"""As KServe's examples for TorchServe have it: 8085 is for the wrapper that stood before TorchServe there."""


@pytest.fixture
def public() -> Iterator[Path]:
    """Folders of pytest can be entered by its own user only."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def container_of(runtime: str) -> dict[str, Any]:
    documents = [one for one in yaml.safe_load_all(RUNTIMES.read_text()) if one]
    (found,) = [one["spec"]["containers"][0] for one in documents if one["metadata"]["name"] == runtime]
    made: dict[str, Any] = found
    return made


@contextmanager
def served(runtime: str, folder: Path, models: Path, model: str = "mnist") -> Iterator[dict[str, Any]]:
    """What the server says of itself. Of the folder, only `state` can be written; ports are any free ones."""
    container = container_of(runtime)
    state = folder / "state"
    state.mkdir()
    places = {"/mnt/models": str(models), "=/state": f"={state}", "{{.Name}}": model}
    ports = {f":{port}": ":0" for port in (8080, 8081, 8082)} | {f"port={port}": "port=0" for port in (7070, 7071)}
    args = [_replaced(argument, {**places, **ports}) for argument in container["args"]]
    env = {
        **image_environment(),
        "PATH": os.environ["PATH"],
        **{one["name"]: one["value"] for one in container.get("env", ())},
    }
    assert args.pop(0) == "msx-serve"  # the word for the image's entry point, which adds --foreground
    command = [*_reader(state), sys.executable, "-m", "msx_frontend.cli.main", "--foreground", *args]
    log = (folder / "server.log").open("w+")
    process = subprocess.Popen(command, env=env, stdout=log, stderr=log)
    try:
        info = json.loads(wait_until(lambda: _read(process, state / "server.json"), "it answers", lambda: _tail(log)))
        base = info["inference"].replace("0.0.0.0", "127.0.0.1")
        ready = lambda: httpx.get(f"{base}/readyz").status_code == 200  # noqa: E731
        wait_until(ready, "it is ready", lambda: _tail(log))
        below = psutil.Process(process.pid).children(recursive=True)
        yield {**info, "inference": base}
        process.terminate()
        assert process.wait(WATCHDOG) == 0, _tail(log)
        assert [one for one in below if one.is_running() and one.status() != psutil.STATUS_ZOMBIE] == []
        assert not {"run", "server.json"} & {path.name for path in state.iterdir()}
    finally:
        process.kill()
        process.wait()
        log.close()


def _reader(state: Path) -> list[str]:
    """Root makes everything else read-only for it, as the cluster does; others only mean it."""
    return confined(state) if os.geteuid() == 0 else []


def _replaced(text: str, by: dict[str, str]) -> str:
    for old, new in by.items():
        text = text.replace(old, new)
    return text


def _read(process: subprocess.Popen[bytes], path: Path) -> str:
    assert process.poll() is None, "the server has ended"
    return path.read_text() if path.exists() else ""


def _tail(log: Any) -> str:
    log.seek(0)
    return str(log.read())[-6000:]


@pytest.fixture
def models(public: Path) -> Path:
    """config/config.properties and model-store/*.mar, as TorchServe's users have them in their storage."""
    root = public / "models"
    (root / "config").mkdir(parents=True)
    (root / "model-store").mkdir()
    (root / "config" / "config.properties").write_text(PROPERTIES)
    pack_service("kserve_data", root / "model-store", model="mnist")
    return root


def test_the_first_protocol(public: Path, models: Path) -> None:
    before = sorted(models.rglob("*"))
    with served("msx-serve-torchserve-v1", public, models) as info:
        assert not info["inference"].endswith(":8085")
        assert info["management"].startswith("http://127.0.0.1:")
        reply = httpx.post(f"{info['inference']}/v1/models/mnist:predict", json={"instances": [{"data": [1, 2]}]})
        assert (reply.status_code, reply.json()) == (200, {"predictions": [[1, 2]]})
        assert httpx.get(f"{info['inference']}/v1/models/mnist").json() == {"name": "mnist", "ready": True}
        assert httpx.get(f"{info['inference']}/openai/v1/models").json()["models"] == ["mnist"]
        assert "msx_requests_queued" in httpx.get(info["metrics"].replace("0.0.0.0", "127.0.0.1") + "/metrics").text
    assert sorted(models.rglob("*")) == before, "nothing is written beside the models"


def test_the_second_protocol_and_grpc(public: Path, models: Path) -> None:
    assert container_of("msx-serve-torchserve-v2")["args"] == container_of("msx-serve-torchserve-grpc")["args"]
    with served("msx-serve-torchserve-grpc", public, models) as info:
        asked = {"inputs": [{"name": "x", "shape": [2], "datatype": "FP32", "data": [1.5, 2]}]}
        reply = httpx.post(f"{info['inference']}/v2/models/mnist/infer", json=asked)
        assert reply.json()["outputs"][0]["data"] == [1.5, 2]
        for address in (info["inference"].removeprefix("http://"), info["grpc_inference"]):
            assert _infer(address.replace("0.0.0.0", "127.0.0.1")) == [1.5, 2]


def _infer(address: str) -> list[float]:
    request, response = (message_class(f"inference.ModelInfer{kind}") for kind in ("Request", "Response"))
    with grpc.insecure_channel(address) as channel:
        path = "/inference.GRPCInferenceService/ModelInfer"
        infer = channel.unary_unary(path, request.SerializeToString, response.FromString)
        asked = request(model_name="mnist")
        made = asked.inputs.add(name="x", datatype="FP32", shape=[2])
        made.contents.fp32_contents.extend([1.5, 2])
        answer = infer(asked, timeout=WATCHDOG)
    datatype = {"FP32": np.float32, "FP64": np.float64}[answer.outputs[0].datatype]
    return list(np.frombuffer(answer.raw_output_contents[0], datatype))


@pytest.mark.long
@pytest.mark.mindspore
def test_a_folder_of_hugging_face(public: Path) -> None:
    """As KServe's storage initializer downloads it: the model is served under the InferenceService's name."""
    models = public / "models"
    shutil.copytree(LLAMA, models, ignore=shutil.ignore_patterns("*.py", "*.yaml", "build"))
    with served("msx-serve-huggingface", public, models, model="qwen") as info:
        asked = {"model": "qwen", "prompt": "Exceptions are", "max_tokens": 8, "temperature": 0}
        reply = httpx.post(f"{info['inference']}/openai/v1/completions", json=asked, timeout=WATCHDOG)
        assert (reply.status_code, reply.json()["usage"]["completion_tokens"]) == (200, 8)
        listed = httpx.get(f"{info['inference']}/openai/v1/models").json()["data"]
        assert [one["id"] for one in listed] == ["qwen"]
