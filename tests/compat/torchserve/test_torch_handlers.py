"""TorchServe's default handlers, on models of torch."""

from __future__ import annotations

import base64
import io
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from msx_core.results import encode
from msx_sdk import HandlerLoadError
from msx_sdk.request import InferenceRequest, Part
from msx_sdk.testing import LocalModel, Reply
from msx_torchserve.packages.ts.torch_handler.base_handler import BaseHandler
from msx_torchserve.packages.ts.torch_handler.image_classifier import ImageClassifier
from msx_torchserve.packages.ts.torch_handler.image_segmenter import ImageSegmenter
from msx_torchserve.packages.ts.torch_handler.object_detector import ObjectDetector
from msx_torchserve.packages.ts.torch_handler.text_classifier import TextClassifier
from tests.core.images.files import png as deep_png
from tests.core.images.files import tiff
from tests.torch_models import Colours, Doubled, png, saved, scripted, torch

pytestmark = [
    pytest.mark.torch,
    pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning"),
]


@pytest.fixture(autouse=True)
def _own_modules() -> Iterator[None]:
    before = set(sys.modules)
    yield
    for name in {"model", "broken"} & (set(sys.modules) - before):
        del sys.modules[name]


def local(
    handler: Any, folder: Path, files: Mapping[str, Any], config: dict[str, Any] | None = None, **model: str
) -> LocalModel:
    for name, data in files.items():
        (folder / name).write_bytes(data.encode() if isinstance(data, str) else data)
    return LocalModel(handler, folder, manifest={"model": model}, config=config or {}, name="m")


def answers(replies: list[Reply]) -> list[Any]:
    assert [reply.failure for reply in replies] == [None] * len(replies)
    return [reply.json() for reply in replies]


class Rows(BaseHandler):
    """Each request's body is a row of numbers."""

    def preprocess(self, data: Any) -> Any:
        return super().preprocess([row["body"] for row in data])


LINEAR = """
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(2))

    def forward(self, x):
        assert not self.training
        return x * self.weight
"""


def test_torchscript(tmp_path: Path) -> None:
    with local(Rows, tmp_path, {"m.pt": scripted(Doubled())}, serializedFile="m.pt") as model:
        assert answers(model.predict([[1, 2], [3, 4]])) == [[2, 4], [6, 8]]
        handler = model.handler.owner
        assert (handler.map_location, handler.device.type, handler.initialized) == ("cpu", "cpu", True)
        assert handler.get_device() is handler.device


def test_eager(tmp_path: Path) -> None:
    files = {"model.py": LINEAR, "m.pth": saved({"weight": torch.tensor([2.0, 3.0])})}
    with local(Rows, tmp_path, files, modelFile="model.py", serializedFile="m.pth") as model:
        assert answers(model.predict([[1, 1]])) == [[2, 3]]


def test_eager_without_weights(tmp_path: Path) -> None:
    with local(Rows, tmp_path, {"model.py": LINEAR}, modelFile="model.py") as model:
        assert answers(model.predict([[1, 1]])) == [[0, 0]]


@pytest.mark.parametrize("section", [{"compile": {"enable": True, "backend": "eager"}}, "eager"])
def test_compiled(tmp_path: Path, section: Any) -> None:
    files = {"model.py": LINEAR}
    with local(Rows, tmp_path, files, {"pt2": section}, modelFile="model.py") as model:
        assert type(model.handler.owner.model).__name__ == "OptimizedModule"
        assert answers(model.predict([[1, 1]])) == [[0, 0]]


def test_not_compiled(tmp_path: Path) -> None:
    config = {"pt2": {"compile": {"enable": False}}}
    with local(Rows, tmp_path, {"model.py": LINEAR}, config, modelFile="model.py") as model:
        assert type(model.handler.owner.model).__name__ == "Net"


def test_onnx(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    onnx = pytest.importorskip("onnx")
    tensor = onnx.helper.make_tensor_value_info
    shape = ["n", 2]
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("Add", ["x", "x"], ["y"])],
        "doubled",
        [tensor("x", onnx.TensorProto.FLOAT, shape)],
        [tensor("y", onnx.TensorProto.FLOAT, shape)],
    )
    made = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    with local(Rows, tmp_path, {"m.onnx": made.SerializeToString()}, serializedFile="m.onnx") as model:
        assert answers(model.predict([[1.5, 2.5]])) == [[3, 5]]


@pytest.mark.parametrize(
    ("files", "config", "model", "message"),
    [
        ({}, {}, {}, "an archive without --serialized-file holds no model"),
        ({"m.bin": b"x"}, {}, {"serializedFile": "m.bin"}, "m.bin holds no model that this handler can load"),
        ({}, {}, {"modelFile": "gone.py"}, "the model file gone.py is not in the archive"),
        ({"broken.py": "x = 1"}, {}, {"modelFile": "broken.py"}, "must define one class of a model; found: none"),
        ({"m.so": b"x"}, {}, {"serializedFile": "m.so"}, "m.so is not a model that this release of torch exported"),
        ({"m.pt2": b"x"}, {}, {"serializedFile": "m.pt2"}, "m.pt2 is not a model that this release of torch exported"),
        (
            {"m.pt": b"x"},
            {"pt2": {"export": {"aot_compile": True}}},
            {"serializedFile": "m.pt"},
            "m.pt is not a model that this release of torch exported",
        ),
        (
            {"model.py": LINEAR},
            {"pt2": {"compile": [1]}},
            {"modelFile": "model.py"},
            "pt2.compile .* a section",
        ),
    ],
)
def test_what_cannot_be_loaded(
    tmp_path: Path, files: dict[str, Any], config: dict[str, Any], model: dict[str, str], message: str
) -> None:
    with pytest.raises(HandlerLoadError, match=message), local(Rows, tmp_path, files, config, **model):
        pass


def test_micro_batches_and_times(tmp_path: Path) -> None:
    config = {"handler": {"profile": True}, "micro_batching": {"micro_batch_size": 2, "parallelism": {"inference": 2}}}
    with local(Rows, tmp_path, {"m.pt": scripted(Doubled())}, config, serializedFile="m.pt") as model:
        assert answers(model.predict([[1], [2], [3]])) == [[2], [4], [6]]
        names = [sample.name for sample in model.context.metrics.take()]
        model.handler.owner._micro_batching.shutdown()
    assert names.count("ts_handler_inference") == 2
    assert names[-1] == "HandlerTime"


def test_the_profiler_of_torch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENABLE_TORCH_PROFILER", "true")
    monkeypatch.chdir(tmp_path)
    with local(Rows, tmp_path, {"m.pt": scripted(Doubled())}, serializedFile="m.pt") as model:
        assert answers(model.predict([[1]])) == [[2]]
    assert list((tmp_path / "profiler").glob("*.json"))


def test_what_the_model_is(tmp_path: Path) -> None:
    class Described(Rows):
        def describe_handle(self) -> Any:
            return {"is": "a test"}

    with local(Described, tmp_path, {"m.pt": scripted(Doubled())}, serializedFile="m.pt") as model:
        assert answers(model.predict([b""], {"describe": "True"})) == [{"is": "a test"}]


def test_no_explanations(tmp_path: Path) -> None:
    with local(Rows, tmp_path, {"m.pt": scripted(Doubled())}, serializedFile="m.pt") as model:
        [reply] = model.predict([[1]], {"explain": "True"})
    assert reply.status == 501
    assert reply.failure
    assert reply.failure.message == "Rows has no explanations: it does not implement get_insights()"


LABELS = json.dumps({"0": ["n1", "red"], "1": "green", "2": "blue"})


def classifier(folder: Path, handler: Any = ImageClassifier, config: dict[str, Any] | None = None) -> LocalModel:
    files = {"m.pt": scripted(Colours()), "index_to_name.json": LABELS}
    return local(handler, folder, files, config, serializedFile="m.pt")


def jpeg(mode: str) -> bytes:
    buffer = io.BytesIO()
    Image.new(mode, (8, 8)).save(buffer, "JPEG")
    return buffer.getvalue()


def as_field(name: str, data: bytes, kind: str | None = None) -> InferenceRequest:
    return InferenceRequest("a", {name: Part(data, kind)})


def test_image_classifier(tmp_path: Path) -> None:
    """Image files and base64 text; the most probable label first."""
    red, blue = png("red"), png("blue", (30, 500))
    with classifier(tmp_path) as model:
        replies = model.predict([red, base64.b64encode(blue).decode()])
        replies += model.predict([as_field("data", red, "image/png")])
    first, second, third = answers(replies)
    assert list(first) == ["red", "green", "blue"] or list(first) == ["red", "blue", "green"]
    assert next(iter(second)) == "blue"
    assert first["red"] > 0.99
    assert sum(first.values()) == pytest.approx(1)
    assert third == first


def test_images_as_tensors(tmp_path: Path) -> None:
    pixels = torch.zeros(3, 4, 4)
    pixels[1] = 1
    with classifier(tmp_path) as model:
        [reply] = answers(model.predict([pixels.tolist()]))
    assert next(iter(reply)) == "green"


def test_fewer_classes(tmp_path: Path) -> None:
    with classifier(tmp_path) as model:
        model.handler.owner.set_max_result_classes(1)
        assert model.handler.owner.get_max_result_classes() == 1
        assert list(answers(model.predict([png("blue")]))[0]) == ["blue"]


@pytest.mark.parametrize("mode", ["L", "1", "P", "LA", "RGBA", "CMYK", "I;16"])
def test_images_of_all_modes(tmp_path: Path, mode: str) -> None:
    """ImageNet's classifiers take red, green and blue."""
    with classifier(tmp_path) as model:
        [reply] = answers(model.predict([png(1, mode=mode) if mode != "CMYK" else jpeg("CMYK")]))
    assert sum(reply.values()) == pytest.approx(1)


def test_images_of_more_than_8_bits(tmp_path: Path) -> None:
    """Red as an X-ray's 12 bits have it: white without a range, once."""
    red = np.zeros((300, 280, 3), np.uint16)
    red[..., 0] = 4095
    with classifier(tmp_path, config={"imageRange": [0, 4095]}) as model:
        keyed, eight = answers(model.predict([deep_png(red), png("red")]))
        grey = answers(model.predict([deep_png(red[..., 0]), png("white")]))
    assert keyed == pytest.approx(eight)
    assert grey[0] == pytest.approx(grey[1])


def test_images_that_need_a_range_fail_alone(tmp_path: Path) -> None:
    with classifier(tmp_path) as model:
        good, bad = model.predict([png("red"), tiff(np.zeros((2, 2), np.float32))])
    assert (good.status, bad.status) == (200, 400)
    assert bad.failure
    assert bad.failure.message.startswith("data: the image has float samples: the model needs imageRange")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"no image", "data: not an image that Pillow can read"),
        (png("red")[:-40], "data: not an image that Pillow can read"),
        ("?", "data: "),
        ({"a": 1}, "data: expected an image, base64 text or nested lists, got dict"),
    ],
)
def test_what_is_not_an_image_fails_alone(tmp_path: Path, body: Any, message: str) -> None:
    with classifier(tmp_path) as model:
        good, bad = model.predict([png("red"), body])
    assert good.status == 200
    assert bad.status == 400
    assert bad.failure
    assert bad.failure.message.startswith(message)


def test_a_processing_of_its_own(tmp_path: Path) -> None:
    """As handlers of TorchServe set it: an attribute of the class that is called with the image."""

    class Own(ImageClassifier):
        image_processing = staticmethod(lambda image: torch.full((3, *image.size), 1.0))
        topk = 2

    with classifier(tmp_path, Own) as model:
        [reply] = answers(model.predict([png("red")]))
    assert list(reply.values()) == pytest.approx([1 / 3, 1 / 3])


@pytest.mark.parametrize("mode", ["L", "P", "RGBA"])
def test_a_processing_of_its_own_gets_the_image_as_it_is(tmp_path: Path, mode: str) -> None:
    class Own(ImageClassifier):
        image_processing = staticmethod(lambda image: torch.full((3, *image.size), float(image.mode == mode)))

    with classifier(tmp_path, Own) as model:
        assert model.handler.owner.preprocess([{"body": png(1, mode=mode)}]).unique().tolist() == [1]


def test_image_processing_is_torchvisions() -> None:
    """The shorter side becomes 256, the middle is cut out, and colours are normalised."""
    assert ImageClassifier.image_processing(__import__("PIL.Image").Image.new("RGB", (300, 280))).shape == (3, 224, 224)
    image = __import__("PIL.Image").Image.new("RGB", (100, 400), "white")
    tensor = ImageClassifier.image_processing(image)
    assert tensor.shape == (3, 224, 224)
    expected = [(1 - 0.485) / 0.229, (1 - 0.456) / 0.224, (1 - 0.406) / 0.225]
    assert tensor[:, 100, 100].tolist() == pytest.approx(expected, rel=1e-5)
    assert ObjectDetector.image_processing(image).shape == (3, 400, 100)


def test_image_segmenter(tmp_path: Path) -> None:
    class Pixels(torch.nn.Module):  # type: ignore[misc]
        def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
            return {"out": x * 100}

    with local(ImageSegmenter, tmp_path, {"m.pt": scripted(Pixels())}, serializedFile="m.pt") as model:
        [reply] = answers(model.predict([png("blue")]))
    assert (len(reply), len(reply[0])) == (224, 224)
    number, probability = reply[100][100]
    assert number == 2
    assert probability == pytest.approx(1)


DETECTOR = """
import torch

class Detector(torch.nn.Module):
    def forward(self, images):
        size = torch.tensor([[0.0, 0.0, float(image.shape[2]), float(image.shape[1])] for image in images])
        return [{"boxes": torch.stack([box, box]), "labels": torch.tensor([1, 0]), "scores": torch.tensor([0.9, 0.4])}
                for box in size]
"""


def test_object_detector(tmp_path: Path) -> None:
    """Images of different sizes, and what is below the threshold is left out."""
    files = {"model.py": DETECTOR, "index_to_name.json": LABELS}
    with local(ObjectDetector, tmp_path, files, modelFile="model.py") as model:
        first, second = answers(model.predict([png("red", (8, 6)), png("red", (5, 9))]))
    assert first == [{"green": [0, 0, 8, 6], "score": pytest.approx(0.9)}]
    assert second[0]["green"] == [0, 0, 5, 9]


TEXT = """
import torch

class Bag(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.EmbeddingBag(4, 2, mode="sum")
        with torch.no_grad():
            self.embedding.weight.copy_(torch.tensor([[0.0, 0.0], [5.0, 0.0], [0.0, 5.0], [0.0, 0.0]]))

    def forward(self, tokens, offsets):
        return self.embedding(tokens, offsets)
"""
VOCABULARY = {"<unk>": 0, "good": 1, "bad": 2, "not good": 3}


def test_text_classifier(tmp_path: Path) -> None:
    """A whole batch; tags, accents, punctuation and short forms are smoothed first."""
    files = {"model.py": TEXT, "source_vocab.pt": saved(VOCABULARY), "index_to_name.json": LABELS}
    with local(TextClassifier, tmp_path, files, modelFile="model.py") as model:
        good, bad, equal = answers(model.predict(["<b>Góod</b>!", b"It's BAD", "good bad"]))
        [wrong] = model.predict([[1]])
    assert (max(good, key=good.get), max(bad, key=bad.get)) == ("red", "green")
    assert list(equal.values()) == pytest.approx([0.5, 0.5])
    assert (wrong.status, wrong.failure and wrong.failure.message) == (400, "data: expected text, got list")


def test_no_vocabulary(tmp_path: Path) -> None:
    with (
        pytest.raises(HandlerLoadError, match=r"the vocabulary words\.pt is not in the archive"),
        local(TextClassifier, tmp_path, {"model.py": TEXT}, modelFile="model.py", sourceVocab="words.pt"),
    ):
        pass


def test_explanations_need_captum(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "captum", None)
    with classifier(tmp_path) as model:
        [reply] = model.predict([png("red")], {"explain": "True"})
    assert reply.status == 501
    assert reply.failure
    assert reply.failure.message.startswith("explanations need captum where the workers run")


COLOURS = """
import torch

class Colours(torch.nn.Module):
    def forward(self, x):
        return x.mean(dim=(2, 3))
"""


def test_explanations(tmp_path: Path) -> None:
    """One attribution an image, shaped as it: only the target's channel counts."""
    pytest.importorskip("captum.attr")
    pixels = torch.ones(3, 2, 2).tolist()
    with local(ImageClassifier, tmp_path, {"model.py": COLOURS}, modelFile="model.py") as model:
        model.handler.owner.target = 2
        explained = answers(model.predict([pixels, pixels], {"explain": "True"}))
    tensor = torch.tensor(explained)
    assert tensor.shape == (2, 3, 2, 2)
    assert tensor[:, :2].abs().max() == 0
    assert tensor[:, 2].min() > 0


def test_explanations_of_text(tmp_path: Path) -> None:
    pytest.importorskip("captum.attr")
    files = {"model.py": TEXT, "source_vocab.pt": saved(VOCABULARY)}
    with local(TextClassifier, tmp_path, files, modelFile="model.py") as model:
        [explained] = answers(model.predict(["good"], {"explain": "True"}))
    assert explained["words"] == ["good"]
    assert explained["importances"] == [pytest.approx(1)]


def test_a_tensor_is_what_torch_saves() -> None:
    tensor = torch.arange(3)
    assert torch.load(io.BytesIO(encode(tensor))).tolist() == [0, 1, 2]
    assert encode({"a": tensor}) == b'{\n  "a": [\n    0,\n    1,\n    2\n  ]\n}'
