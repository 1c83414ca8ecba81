"""A ResNet of MindCV, exported to MindIR: as a servable of MindSpore Serving and as a model of three stages, it answers
what the network itself answers."""

from __future__ import annotations

import subprocess
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from msx_archiver.options import PackOptions
from msx_archiver.pack import pack
from msx_archiver.servable import pack_servable
from tests.e2e.server import RunningServer, new_store, run_server
from tests.long.environments import environment

pytest.importorskip("mindspore")

pytestmark = [pytest.mark.e2e, pytest.mark.mindspore, pytest.mark.long, pytest.mark.timeout(1800)]
"""Seconds: the first run installs packages."""

LOAD = 240.0
TOLERANCE = 1e-3
"""Largest difference of scores between -4 and 5; batches are computed in another order than single pictures."""

DECODE = """
import io

import numpy as np
from PIL import Image

MEAN, DEVIATION = np.array([0.485, 0.456, 0.406], np.float32), np.array([0.229, 0.224, 0.225], np.float32)


def decode(data):
    picture = Image.open(io.BytesIO(bytes(data))).convert("RGB").resize((224, 224))
    return ((np.asarray(picture, np.float32) / 255 - MEAN) / DEVIATION).transpose(2, 0, 1)
"""

SERVABLE = """
from mindspore_serving.server import register

from decoding import decode

resnet = register.declare_model(model_file="resnet.mindir", model_format="MindIR", with_batch_dim=True)


def best(scores):
    return int(scores.argmax())


@register.register_method(output_names=["label", "scores"])
def classify(image):
    x = register.add_stage(decode, image, outputs_count=1)
    scores = register.add_stage(resnet, x, outputs_count=1)
    label = register.add_stage(best, scores, outputs_count=1)
    return label, scores
"""

STAGES = """
from decoding import decode


class Decode:
    def initialize(self, context):
        pass

    def handle(self, data, context):
        return [decode(request["body"]) for request in data]


class Answer(Decode):
    def handle(self, data, context):
        return [{"label": int(one["body"].argmax()), "scores": one["body"].tolist()} for one in data]
"""

CONFIG = """
stages:
  decode: {handler: "staged.py:Decode", workers: 2, device: none}
  infer: {handler: mindir, serializedFile: resnet.mindir, batchSize: 4, maxBatchDelay: 20}
  answer: {handler: "staged.py:Answer", device: none}
"""


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("resnet")
    script = Path(__file__).parent / "export_resnet.py"
    done = subprocess.run(
        [environment("mindcv"), str(script), str(folder)], capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def server(exported: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("server")
    store = new_store(folder)
    pack_resnet_servable(folder, exported, store)
    pack_resnet_stages(folder, exported, store)
    with run_server(folder, "--models", "resnet-1.mar", "staged.mar", ready=False) as running:
        running.wait_ready(LOAD)
        yield running


def pack_resnet_servable(folder: Path, exported: Path, store: Path) -> None:
    root = folder / "resnet"
    (root / "1").mkdir(parents=True)
    (root / "servable_config.py").write_text(SERVABLE)
    (root / "decoding.py").write_text(DECODE)
    (root / "1" / "resnet.mindir").write_bytes((exported / "resnet.mindir").read_bytes())
    pack_servable(root, None, store, config={"batchSize": 4, "maxBatchDelay": 20})


def pack_resnet_stages(folder: Path, exported: Path, store: Path) -> None:
    files = {"staged.py": STAGES, "decoding.py": DECODE, "staged.yaml": CONFIG}
    for name, text in files.items():
        (folder / name).write_text(text)
    pack(
        PackOptions(
            model_name="staged",
            config_file=str(folder / "staged.yaml"),
            extra_files=f"{folder}/staged.py,{folder}/decoding.py,{exported}/resnet.mindir",
            export_path=store,
        )
    )


def assert_right(exported: Path, answers: list[Any]) -> None:
    expected = np.load(exported / "answers.npy")
    assert np.abs(expected - expected[0]).max() > 100 * TOLERANCE, "the pictures are told apart"
    scores = np.array([answer["scores"] for answer in answers])
    np.testing.assert_allclose(scores, expected, atol=TOLERANCE)
    assert [answer["label"] for answer in answers] == expected.argmax(1).tolist()


def pictures(exported: Path) -> list[bytes]:
    return [file.read_bytes() for file in sorted(exported.glob("*.png"))]


def test_a_servable(server: RunningServer, exported: Path) -> None:
    instances = [{"image": {"b64": b64encode(picture).decode()}} for picture in pictures(exported)]
    reply = server.inference.post("/model/resnet:classify", json={"instances": instances}, timeout=120)
    assert "instances" in reply.json(), reply.text[:1000]
    assert_right(exported, reply.json()["instances"])


def test_three_stages(server: RunningServer, exported: Path) -> None:
    replies = [server.predict("staged", picture, timeout=120) for picture in pictures(exported)]
    assert {reply.status_code for reply in replies} == {200}, replies[0].text[:1000]
    assert_right(exported, [reply.json() for reply in replies])
