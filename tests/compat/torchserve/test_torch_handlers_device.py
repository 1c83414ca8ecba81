"""TorchServe's handlers on a GPU: torch's device `meta` stands for it, whose tensors do not mix with the CPU's."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from msx_sdk.context import Context, ModelInfo
from msx_torchserve.packages.ts._extras import need
from msx_torchserve.packages.ts.torch_handler import base_handler
from msx_torchserve.packages.ts.torch_handler._copies import DeviceRun
from msx_torchserve.packages.ts.torch_handler.base_handler import BaseHandler
from msx_torchserve.packages.ts.torch_handler.densenet_handler import DenseNetHandler
from msx_torchserve.packages.ts.torch_handler.image_classifier import ImageClassifier
from msx_torchserve.packages.ts.torch_handler.image_segmenter import ImageSegmenter
from msx_torchserve.packages.ts.torch_handler.object_detector import ObjectDetector
from msx_torchserve.packages.ts.torch_handler.text_classifier import TextClassifier
from tests.torch_models import png, saved, torch

pytestmark = pytest.mark.torch

GPU = torch.device("meta")
IMAGES = """
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 3, 1)

    def forward(self, x):
        return self.conv(x).mean(dim=(2, 3))
"""
TEXTS = """
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.EmbeddingBag(4, 2, mode="sum")

    def forward(self, tokens, offsets):
        return self.embedding(tokens, offsets)
"""
SEGMENTS = """
import torch

class Net(torch.nn.Module):
    def forward(self, x):
        return {"out": x[:, :, :4, :5] * 3}
"""
OBJECTS = """
import torch

class Net(torch.nn.Module):
    def forward(self, images):
        boxes = [image.flatten()[:8].reshape(2, 4) for image in images]
        return [{"boxes": box, "labels": torch.tensor([1, 0]), "scores": torch.tensor([0.9, 0.4])} for box in boxes]
"""
ROWS = """
import torch

class Net(torch.nn.Linear):
    def __init__(self):
        super().__init__(2, 2)
"""


class Rows(BaseHandler):
    """As users write it."""

    def preprocess(self, data: Any) -> Any:
        return torch.tensor([row["body"] for row in data])


class Seeing:
    """Torch, which sees two GPUs."""

    cuda = SimpleNamespace(is_available=lambda: True, get_device_capability=lambda device: (7, 5))

    @staticmethod
    def device(name: str) -> Any:
        return GPU if name == "cuda:1" else torch.device(name)

    def __getattr__(self, name: str) -> Any:
        return getattr(torch, name)


@pytest.fixture(autouse=True)
def _sees_gpus(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(base_handler, "need", lambda name: Seeing() if name == "torch" else need(name))
    yield
    sys.modules.pop("model", None)


def loaded(handler: Any, code: str, folder: Path, given: int | None = None) -> Any:
    (folder / "model.py").write_text(code)
    (folder / "source_vocab.pt").write_bytes(saved({"<unk>": 0, "a": 1, "b": 2}))
    manifest = {"model": {"modelFile": "model.py"}}
    handler.initialize(Context(ModelInfo("m", model_dir=folder, manifest=manifest, device_id=given)))
    return handler


@pytest.mark.parametrize("given", [None, 1])
@pytest.mark.parametrize(
    ("handler", "code", "body"),
    [(ImageClassifier(), IMAGES, png("red")), (TextClassifier(), TEXTS, "a b"), (Rows(), ROWS, [1.0, 2.0])],
    ids=["image", "text", "custom"],
)
def test_model_and_inputs_are_on_the_workers_device(
    handler: Any, code: str, body: Any, given: int | None, tmp_path: Path
) -> None:
    handler = loaded(handler, code, tmp_path, given)
    answer = handler.inference(handler.preprocess([{"body": body}]))
    expected = torch.device("cpu") if given is None else GPU
    assert {handler.device, answer.device, *(one.device for one in handler.model.parameters())} == {expected}


class Event:
    def __init__(self, enable_timing: bool) -> None: ...

    def record(self, stream: Any) -> None: ...

    def synchronize(self) -> None: ...

    def elapsed_time(self, end: Any) -> float:
        return 0.0


@pytest.mark.parametrize(
    ("handler", "code", "bodies"),
    [
        (ImageClassifier(), IMAGES, [png("red"), png("blue")]),
        (ImageSegmenter(), SEGMENTS, [png("red"), png("blue")]),
        (ObjectDetector(), OBJECTS, [png("red"), png("blue", (30, 50))]),
        (TextClassifier(), TEXTS, ["a b", "b"]),
        (DenseNetHandler(), ROWS, [[1.0, 2.0], [3.0, 4.0]]),
    ],
    ids=["classifier", "segmenter", "detector", "text", "base"],
)
def test_answers_are_the_same_whoever_copies_results(
    handler: Any, code: str, bodies: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The part of `postprocess` that a GPU computes comes before the copy."""
    handler = loaded(handler, code, tmp_path)
    data = bodies if isinstance(handler, DenseNetHandler) else [{"body": body} for body in bodies]
    expected = handler.postprocess(handler.inference(handler.preprocess(data)))
    monkeypatch.setattr(base_handler, "on_gpu", lambda device: True)
    monkeypatch.setattr(torch.cuda, "Event", Event)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: None)
    run = handler._start_inference(handler.preprocess(data))
    assert isinstance(run, DeviceRun)
    assert handler._end_postprocess(run) == expected
