"""Mosec's examples of ResNet-50, DistilBERT and embeddings with torch: what the model itself says of the same input."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import msgspec
import numpy as np
import pytest
from PIL import Image

from tests.e2e.server import RunningServer, new_store, run_server
from tests.e2e.test_mosec_examples import FORM, served
from tests.torch.small_models import small_bert
from tests.torch_models import png, torch

torchvision = pytest.importorskip("torchvision")

pytestmark = [pytest.mark.torch, pytest.mark.e2e]

SERVICE = "mosec_torch.py"
TEXT = "i bought this & that"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("mosec")
    new_store(folder)
    with run_server(folder) as running:
        yield running


def ids(text: str) -> Any:
    """As the tokenizer makes them, which knows these words and no others."""
    return torch.tensor([[2, *(5 + at for at in range(len(text.split()))), 3]])


def test_resnet50_msgpack(server: RunningServer) -> None:
    image = png("orange", (224, 224))
    torch.manual_seed(7)
    model = torchvision.models.resnet50(weights=None).eval()
    transforms = torchvision.transforms
    normal = transforms.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
    steps = [transforms.ToTensor(), transforms.Resize((256, 256)), transforms.CenterCrop(224), normal]
    with torch.no_grad():
        number = int(model(transforms.Compose(steps)(Image.open(io.BytesIO(image)))[None]).argmax())
    with served(server, "resnet50_msgpack", SERVICE) as base:
        reply = httpx.post(f"{base}/inference", content=msgspec.msgpack.encode({"image": image}), timeout=60)
        assert msgspec.msgpack.decode(reply.content) == {"category": f"category {number}"}
        for wrong, text in (({"other": 1}, "cannot find key 'image'"), ({"image": b"no"}, "cannot decode as image")):
            refused = httpx.post(f"{base}/inference", content=msgspec.msgpack.encode(wrong))
            assert (refused.status_code, text in refused.text) == (422, True)


def test_distil_bert_server_pytorch(server: RunningServer, tmp_path: Path) -> None:
    model = small_bert(tmp_path / "checkpoint", TEXT.split(), "DistilBertForSequenceClassification")
    with torch.no_grad():
        expected = float(model(ids(TEXT))[0].softmax(dim=1)[0, 1])
    with served(server, "distil_bert_server_pytorch", SERVICE, tmp_path / "checkpoint") as base:
        reply = httpx.post(f"{base}/inference", content=TEXT.encode(), headers=FORM, timeout=60)
    assert (reply.status_code, reply.headers["content-type"]) == (200, "text/plain")
    name, _, value = reply.text.partition("=")
    assert name == "positive"
    assert float(value) == pytest.approx(expected, abs=1e-5)


def test_embedding(server: RunningServer, tmp_path: Path) -> None:
    model = small_bert(tmp_path / "checkpoint", TEXT.split(), "BertModel")
    with torch.no_grad():
        mean = model(ids(TEXT))[0][0].mean(dim=0)
    expected = (mean / mean.norm()).numpy()
    asked = {"model": "thenlper/gte-base", "input": TEXT}
    with served(server, "embedding", SERVICE, tmp_path / "checkpoint") as base:
        plain = httpx.post(f"{base}/embeddings", json=asked, timeout=60).json()
        packed = httpx.post(f"{base}/v1/embeddings", json={**asked, "encoding_format": "base64"}).json()
    assert plain["data"][0]["embedding"] == pytest.approx(expected, abs=1e-5)
    vector = np.frombuffer(base64.b64decode(packed["data"][0]["embedding"]), np.float32)
    assert vector == pytest.approx(expected, abs=1e-5)
    assert plain["usage"]["prompt_tokens"] == len(TEXT.split()) + 2
