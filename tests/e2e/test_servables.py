"""Servables of MindSpore Serving in a real server: Python before and after a convolutional MindIR, function processes
that die, and a worker that dies with its function processes."""

from __future__ import annotations

import os
import select
import signal
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from msx_archiver.servable import pack_servable
from msx_mindspore_serving.packages.mindspore_serving.client import Client
from tests.e2e.server import RunningServer, new_store, run_server, wait_until
from tests.mindspore_scripts import run_mindspore
from tests.processes import alive, children_of

pytestmark = pytest.mark.e2e

FUNCTIONS = """
import os, signal
from mindspore_serving.server import register

def half(x):
    if x == 13:
        os.kill(os.getpid(), signal.SIGKILL)
    if x % 2:
        raise ValueError(f"{x} is odd")
    return x // 2, os.getpid()

@register.register_method(["y", "pid"])
def halve(x):
    y, pid = register.add_stage(half, x, outputs_count=2)
    return y, pid
"""


def servable(folder: Path, source: str, name: str = "net") -> Path:
    root = folder / name
    root.mkdir()
    (root / "servable_config.py").write_text(source)
    return root


def ask(server: RunningServer, method: str, **inputs: Any) -> Any:
    reply = server.predict(f"net:{method}", inputs)
    return reply.json() if reply.status_code == 200 else (reply.status_code, reply.json()["message"])


def children(pid: int) -> list[int]:
    return sorted(child.pid for child in children_of(pid))


def test_function_processes(tmp_path: Path) -> None:
    pytest.importorskip("numpy")
    root = servable(tmp_path, FUNCTIONS)
    pack_servable(root, None, new_store(tmp_path), config={"servable": {"functionProcesses": 2}})
    with run_server(tmp_path, "--models", "net-1.mar") as server:
        (worker,) = server.worker_pids("net")
        before = children(worker)
        assert len(before) == 2
        answer = ask(server, "halve", x=4)
        assert (answer["y"], answer["pid"] in before) == (2, True)
        failed = "Call Function 'net.half' Failed, method: 'halve', stage index(begin with 1): 1, error msg: "
        assert ask(server, "halve", x=3) == (503, f"{failed}3 is odd")
        assert ask(server, "halve", x=13) == (503, f"{failed}the process of the function has ended by signal 9")
        assert ask(server, "halve", x=4)["y"] == 2
        (killed,) = set(before) & set(children(worker))
        ended = os.pidfd_open(killed)
        os.kill(killed, signal.SIGKILL)
        assert select.select([ended], [], [], 60)[0], "it has ended, with all its threads"
        os.close(ended)
        assert ask(server, "halve", x=6)["y"] == 3, "one that died meanwhile is replaced before the next batch"
        functions = children(worker)
        assert len(functions) == 2
        assert server.worker_pids("net") == [worker], "the worker has seen all of it"
        server.kill_worker(worker, "net")
        wait_until(lambda: not alive(functions), "its function processes have ended")
        assert ask(server, "halve", x=6)["y"] == 3


EXPORT = """
import numpy as np, mindspore as ms
from mindspore import Tensor, nn

class Net(nn.Cell):
    "The brightness of the four quarters of an image of 8 by 8."
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 1, 4, stride=4, pad_mode="valid", has_bias=False, weight_init="ones")
        self.flat = nn.Flatten()

    def construct(self, x):
        return self.flat(self.conv(x))

ms.export(Net(), Tensor(np.ones((4, 1, 8, 8), np.float32)), file_name="quarters", file_format="MINDIR")
"""

CLASSIFY = """
import os
import numpy as np
from mindspore_serving.server import register

with open(os.path.join(os.path.dirname(__file__), "labels.txt")) as file:
    LABELS = file.read().split()

context = register.Context(thread_num=1)
model = register.declare_model(model_file="quarters.mindir", model_format="MindIR", context=context)

def decode(pixels):
    if pixels.size != 64:
        raise ValueError(f"{pixels.size} pixels, not 64")
    return (np.asarray(pixels, np.float32) / 255).reshape(1, 8, 8)

def name(instances):
    for index, scores in instances:
        yield LABELS[int(index)], scores

@register.register_method(["label", "scores"])
def classify(pixels):
    x = register.add_stage(decode, pixels, outputs_count=1)
    scores = register.add_stage(model, x, outputs_count=1)
    index = register.add_stage("argmax_cpp", scores, outputs_count=1)
    label, scores = register.add_stage(name, index, scores, outputs_count=2, batch_size=0)
    return label, scores
"""


@pytest.mark.mindspore
def test_python_before_and_after_a_convolution(tmp_path: Path) -> None:
    np = pytest.importorskip("numpy")
    pytest.importorskip("mindspore")
    root = servable(tmp_path, CLASSIFY)
    (root / "labels.txt").write_text("top-left top-right bottom-left bottom-right")
    (root / "1").mkdir()
    (tmp_path / "export.py").write_text(EXPORT)
    run_mindspore(tmp_path / "export.py", folder=root / "1")
    pack_servable(root, None, new_store(tmp_path))
    with run_server(tmp_path, "--models", "net-1.mar") as server:
        images = [np.zeros((8, 8), np.uint8) for _ in range(5)]
        for image, (y, x) in zip(images, [(0, 0), (0, 4), (4, 0), (4, 4)], strict=False):
            image[y : y + 4, x : x + 4] = 255
        labels = ["top-left", "top-right", "bottom-left", "bottom-right", "top-left"]
        answer = ask(server, "classify", pixels=images[1].tolist())
        assert (answer["label"], sum(answer["scores"])) == ("top-right", 16)
        failed = "Call Function 'net.decode' Failed, method: 'classify', stage index(begin with 1): 1, error msg: "
        assert ask(server, "classify", pixels=[1]) == (503, f"{failed}1 pixels, not 64")

        sent = [
            {"pixels": {"b64": b64encode(one.tobytes()).decode(), "type": "uint8", "shape": [8, 8]}} for one in images
        ]
        reply = server.inference.post("/model/net:classify", json={"instances": [*sent, {"pixels": [1]}]}).json()
        *good, bad = reply["instances"]
        assert [one["label"] for one in good] == labels
        assert bad == {"error_msg": f"{failed}1 pixels, not 64"}

        address = server.info["grpc_inference"]
        answers = Client(address, "net", "classify", 1).infer([{"pixels": image} for image in images])
        assert [one["label"] for one in answers] == labels
        assert answers[0]["scores"].tolist() == [16, 0, 0, 0]
        alone = Client(address, "net", "@call_quarters.mindir_0").infer({"x0": np.ones((1, 8, 8), np.float32)})
        assert alone[0]["y0"].tolist() == [16] * 4
        openapi = server.inference.get("/openapi.json").json()
        OpenAPIV31SpecValidator(openapi).validate()
        assert "/predictions/net:classify" in openapi["paths"]
        described = server.describe("net")
        assert (described["modelVersion"], described["batchSize"], described["maxBatchDelay"]) == ("1", 32, 0)
