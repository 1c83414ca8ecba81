"""BaseHandler and TorchServe's default handlers serve torch models, from archives in every format.

contract#default-handlers
"""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

import pytest

from tests.contract.torchserve.handlers import SERVICES, archive_of
from tests.contract.torchserve.setup import Setup
from tests.e2e.server import RunningServer
from tests.torch_archiver import FORMATS, torch_archive
from tests.torch_models import Colours, cnn, digit_image, digit_of, png, saved, scripted, torch

pytestmark = [pytest.mark.e2e, pytest.mark.torch]

Files: TypeAlias = dict[str, bytes | str]

LABELS = json.dumps({"0": ["n1", "red"], "1": "green", "2": "blue"})
TEXT = """
import torch

class Bag(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.bag = torch.nn.EmbeddingBag(3, 2, mode="sum")

    def forward(self, tokens, offsets):
        return self.bag(tokens, offsets)
"""
WEIGHTS = {"bag.weight": torch.tensor([[0.0, 0.0], [5.0, 0.0], [0.0, 5.0]])}
TENSOR = """
from ts.torch_handler.base_handler import BaseHandler

class Tensors(BaseHandler):
    def preprocess(self, data):
        return super().preprocess([row["body"] for row in data])

    def postprocess(self, data):
        return list(data)
"""


def prepare(store: Path) -> None:
    files: Files = {"cnn_model.py": (SERVICES / "cnn_model.py").read_text(), "digits.pt": saved(cnn().state_dict())}
    model = {"modelFile": "cnn_model.py", "serializedFile": "digits.pt"}
    for archive_format in FORMATS:
        archive_of("cnn", store, name=f"cnn-{archive_format}", files=files, archive_format=archive_format, **model)
    images: Files = {"colours.pt": scripted(Colours()), "index_to_name.json": LABELS}
    torch_archive(store, "images", images, handler="image_classifier", serializedFile="colours.pt")
    words: Files = {"source_vocab.pt": saved({"<unk>": 0, "good": 1, "bad": 2}), "index_to_name.json": LABELS}
    text: Files = {"bag.py": TEXT, "bag.pt": saved(WEIGHTS), **words}
    torch_archive(store, "text", text, handler="text_classifier", modelFile="bag.py", serializedFile="bag.pt")
    tensors: Files = {"h.py": TENSOR, "colours.pt": scripted(Colours())}
    torch_archive(store, "tensors", tensors, serializedFile="colours.pt")


SERVER = Setup(prepare=prepare)


@pytest.fixture
def model(server: RunningServer, request: pytest.FixtureRequest) -> Iterator[str]:
    """Registered for this case alone: a worker that has imported torch takes its memory."""
    name: str = request.param
    archive = next(path for path in server.store.iterdir() if path.name.partition(".")[0] == name)
    reply = server.register(archive)
    assert reply.status_code == 200, reply.text
    yield name
    server.management.delete(f"/models/{name}")


@pytest.mark.parametrize("model", [f"cnn-{archive_format}" for archive_format in FORMATS], indirect=True)
def test_a_cnn_by_base_handler(server: RunningServer, model: str) -> None:
    """Its own preprocess and postprocess; the model is a class and its state dict."""
    network = cnn()
    for seed in range(3):
        image = digit_image(seed)
        reply = server.predict(model, image)
        assert (reply.status_code, reply.json()) == (200, digit_of(network, image))
    as_field = server.inference.post(f"/predictions/{model}", files={"data": ("x.png", digit_image(0), "image/png")})
    assert as_field.json() == digit_of(network, digit_image(0))


@pytest.mark.parametrize("model", ["images"], indirect=True)
def test_image_classifier(server: RunningServer, model: str) -> None:
    """The archive names it; the most probable labels first."""
    red = png("red")
    answer = server.predict(model, red).json()
    assert next(iter(answer)) == "red"
    assert sum(answer.values()) == pytest.approx(1)
    assert server.predict(model, {"data": 1}).status_code == 400
    text = base64.b64encode(red).decode()
    assert server.predict(model, text.encode(), headers={"content-type": "text/plain"}).json() == answer


@pytest.mark.parametrize("model", ["text"], indirect=True)
def test_text_classifier(server: RunningServer, model: str) -> None:
    answer = server.predict(model, b"It's good!").json()
    assert max(answer, key=answer.get) == "red"
    answer = server.predict(model, b"bad", headers={"content-type": "text/plain"}).json()
    assert max(answer, key=answer.get) == "green"


@pytest.mark.parametrize("model", ["tensors"], indirect=True)
def test_a_tensor_is_what_torch_saves(server: RunningServer, model: str) -> None:
    """contract#inference: the body of a `torch.Tensor`."""
    image = torch.zeros(3, 2, 2)
    image[1] = 1
    reply = server.predict(model, image.tolist())
    assert reply.status_code == 200, reply.text
    assert torch.load(io.BytesIO(reply.content)).tolist() == [0.0, 10.0, 0.0]
