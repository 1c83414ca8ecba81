"""A server started as deploy/kserve's runtimes start it, on a folder as KServe's storage initializer leaves it."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import httpx
import numpy as np
import pytest
import yaml

from msx_net.grpc.messages import message_class
from tests.e2e.containers import running
from tests.e2e.server import WATCHDOG, pack_service

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
    with running(container_of(runtime), folder, {"/mnt/models": str(models), "{{.Name}}": model}) as info:
        yield info


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
        reply = httpx.post(f"{info['inference']}/v1/models/mnist:predict", json={"instances": [{"data": [1, 2]}]})
        assert (reply.status_code, reply.json()) == (200, {"predictions": [[1, 2]]})
        assert httpx.get(f"{info['inference']}/v1/models/mnist").json() == {"name": "mnist", "ready": True}
        assert httpx.get(f"{info['inference']}/openai/v1/models").json()["models"] == ["mnist"]
        assert "msx_requests_queued" in httpx.get(info["metrics"] + "/metrics").text
    assert sorted(models.rglob("*")) == before, "nothing is written beside the models"


def test_the_second_protocol_and_grpc(public: Path, models: Path) -> None:
    assert container_of("msx-serve-torchserve-v2")["args"] == container_of("msx-serve-torchserve-grpc")["args"]
    with served("msx-serve-torchserve-grpc", public, models) as info:
        asked = {"inputs": [{"name": "x", "shape": [2], "datatype": "FP32", "data": [1.5, 2]}]}
        reply = httpx.post(f"{info['inference']}/v2/models/mnist/infer", json=asked)
        assert reply.json()["outputs"][0]["data"] == [1.5, 2]
        for address in (info["inference"].removeprefix("http://"), info["grpc_inference"]):
            assert _infer(address) == [1.5, 2]


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
