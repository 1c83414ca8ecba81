"""Handlers that make the calls of TorchServe's published examples, on small models of random weights."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import msx_torchserve
from msx_sdk.testing import LocalModel, Reply
from tests.torch_models import EXAMPLES, cnn, digit_image, digit_of, example_model, png, saved, scripted, torch

pytestmark = [
    pytest.mark.torch,
    pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning"),
]

LABELS = '{"0": ["n0", "red"], "1": "green", "2": "blue", "3": "white", "4": "black", "5": "grey"}'
SEQUENCE = "ts_request_sequence_id"
START = {SEQUENCE: "s", "ts_request_sequence_start": "true"}

Make = Callable[..., LocalModel]


@pytest.fixture(autouse=True)
def _as_in_a_worker() -> Iterator[None]:
    """`ts` can be imported; what handlers import is theirs alone."""
    path, before = sys.path[:], set(sys.modules)
    msx_torchserve.TorchServePackage().offer()
    yield
    sys.path[:] = path
    for name in set(sys.modules) - before:
        if (EXAMPLES / f"{name}.py").exists():
            del sys.modules[name]


@pytest.fixture
def packed(tmp_path: Path) -> Make:
    """An unpacked archive of the files of an example, and of others; `model` are keys of the manifest."""

    def make(
        handler: str, *names: str, files: dict[str, bytes | str] | None = None, config: Any = None, **model: str
    ) -> LocalModel:
        for name in names:
            (tmp_path / f"{name}.py").write_text((EXAMPLES / f"{name}.py").read_text())
        for name, data in (files or {}).items():
            (tmp_path / name).write_bytes(data.encode() if isinstance(data, str) else data)
        return LocalModel(handler, tmp_path, manifest={"model": model}, config=config or {}, name="digits")

    return make


def answers(replies: list[Reply]) -> list[Any]:
    assert [reply.failure for reply in replies] == [None] * len(replies)
    return [reply.json() for reply in replies]


def mnist_files() -> dict[str, bytes | str]:
    return {"digits.py": (EXAMPLES.parent / "cnn_model.py").read_text(), "digits.pt": saved(cnn().state_dict())}


MNIST = {"modelFile": "digits.py", "serializedFile": "digits.pt"}


def test_mnist(packed: Make) -> None:
    """Greyscale images reach the handler's own transforms as they are, in one batch with others of its size."""
    images = [digit_image(seed) for seed in range(3)]
    with packed("mnist.py", "mnist", files=mnist_files(), **MNIST) as model:
        assert answers(model.predict(images)) == [digit_of(cnn(), image, 0.1307, 0.3081) for image in images]


def test_mnist_under_the_profiler(packed: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ENABLE_TORCH_PROFILER", "true")
    monkeypatch.chdir(tmp_path)
    with packed("mnist.py", "mnist", files=mnist_files(), **MNIST) as model:
        assert len(answers(model.predict([digit_image(1)]))) == 1


def test_custom_metrics(packed: Make) -> None:
    with packed("custom_metrics.py", "custom_metrics", files=mnist_files(), **MNIST) as model:
        assert len(answers(model.predict([digit_image(1), digit_image(2)]))) == 2
        samples = model.context.metrics.take()
    level = {"ModelName": "digits", "Level": "Model"}
    found = {sample.name: (sample.kind, sample.unit, dict(sample.labels)) for sample in samples}
    assert {name: found[name] for name in found if name not in ("HandlerTime", "PredictionTime")} == {
        "InferenceRequestCount": ("counter", "Count", {}),
        "InitializeCallCount": ("counter", "Count", level),
        "PreprocessCallCount": ("counter", "Count", {"ModelName": "digits"}),
        "RequestBatchSize": ("gauge", "Count", {"ModelName": "digits"}),
        "SizeOfImage": ("gauge", "Kilobytes", level),
        "HandlerMethodTime": ("gauge", "Milliseconds", {"MethodName": "preprocess", **level}),
        "PostprocessCallCount": ("counter", "Count", level),
        "ExamplePercentMetric": ("histogram", "Percent", level),
        "Failures": ("counter", "unit", {"Level": "Error"}),
    }
    assert [sample.value for sample in samples if sample.name == "Failures"] == [2, 3]


def test_densenet(packed: Make) -> None:
    """The default handler; the model file renames what it loads."""
    network = example_model("densenet_model", "ImageClassifier")
    old = {f"layers.{key[6:]}" if key.startswith("layers") else key: value for key, value in network.items()}
    files: dict[str, bytes | str] = {"densenet.pth": saved(old), "index_to_name.json": LABELS}
    model = {"modelFile": "densenet_model.py", "serializedFile": "densenet.pth"}
    with packed("ts.torch_handler.image_classifier", "densenet_model", files=files, **model) as local:
        rows = answers(local.predict([png("red"), png(128, mode="L"), png((255, 0, 0, 128), mode="RGBA")]))
    assert [len(row) for row in rows] == [5, 5, 5]
    assert all(before >= after for row in rows for before, after in pairwise(row.values()))


@pytest.mark.parametrize("parallelism", [None, {"preprocess": 2, "inference": 3}])
def test_micro_batching(packed: Make, parallelism: Any) -> None:
    network = example_model("densenet_model", "ImageClassifier")
    config = {"micro_batching": {"micro_batch_size": 2, "parallelism": parallelism}}
    files: dict[str, bytes | str] = {"m.pth": saved(network)}
    model = {"modelFile": "densenet_model.py", "serializedFile": "m.pth"}
    images = [png(colour) for colour in ("red", "green", "blue", "white", "black")]
    with packed("micro_batching.py", "micro_batching", "densenet_model", files=files, config=config, **model) as local:
        together = answers(local.predict(images))
        single = [answers(local.predict([image]))[0] for image in images]
        [described] = answers(local.predict([b""], {"describe": "True"}))
        local.handler.owner.handle.shutdown()
    assert [max(row, key=row.get) for row in together] == [max(row, key=row.get) for row in single]
    assert described == {}


class Counted(torch.nn.Module):  # type: ignore[misc]
    """Texts in, so that its tokenizer is scripted, too: logits by their numbers of words and letters."""

    def __init__(self) -> None:
        super().__init__()
        self.head = torch.nn.Linear(2, 3)

    def forward(self, texts: list[str]) -> torch.Tensor:
        rows = [[float(len(text.split(" "))), float(len(text))] for text in texts]
        return self.head(torch.tensor(rows))


def test_scriptable_tokenizer(packed: Make) -> None:
    files: dict[str, bytes | str] = {"m.pt": scripted(Counted()), "index_to_name.json": LABELS}
    with packed("scriptable_tokenizer.py", "scriptable_tokenizer", files=files, serializedFile="m.pt") as model:
        plain, tagged, other = answers(model.predict(["good news", b"<b>Good</b> NEWS&nbsp;", "x"]))
    assert plain == tagged != other
    assert set(plain) == {"red", "green", "blue"}


def test_object_detector(packed: Make) -> None:
    state = example_model("detector_model", "ObjectDetectorModel")
    files: dict[str, bytes | str] = {"m.pth": saved(state)}
    model = {"modelFile": "detector_model.py", "serializedFile": "m.pth"}
    with packed("ts.torch_handler.object_detector", "detector_model", files=files, **model) as local:
        first, grey = answers(local.predict([png("red", (8, 6)), png(3, (5, 9), mode="L")]))
    best, *_ = first
    [label] = set(best) - {"score"}
    assert (label.isdigit(), best[label], best["score"]) == (True, [0, 0, 8, 6], 1)
    assert all(found["score"] >= 0.5 for found in first + grey)


def test_a_detector_that_loads_its_model_by_itself(packed: Make) -> None:
    files: dict[str, bytes | str] = {"yolo.pt": saved(torch.nn.Conv2d(3, 2, 64).state_dict())}
    with packed("counting_detector.py", "counting_detector", files=files, serializedFile="yolo.pt") as model:
        [found] = answers(model.predict([png("red")]))
    assert sum(found.values()) == 2
    assert set(found) <= {"cat", "dog"}


def test_image_segmenter(packed: Make) -> None:
    state = example_model("segmenter_model", "ImageSegmenterModel")
    files: dict[str, bytes | str] = {"m.pth": saved(state)}
    model = {"modelFile": "segmenter_model.py", "serializedFile": "m.pth"}
    names = ("segmenter_model", "segmenter_head")
    with packed("ts.torch_handler.image_segmenter", *names, files=files, **model) as local:
        [pixels] = answers(local.predict([png("red")]))
    assert (len(pixels), len(pixels[0])) == (224, 224)
    assert all(number in range(5) and 0.2 <= share <= 1 for number, share in pixels[100])


def test_intermediate_streaming(packed: Make) -> None:
    """The thread's pieces so far are sent, of two requests at once, and the last is empty."""
    model = {"modelFile": "next_letter_model.py", "serializedFile": "m.pth"}
    files: dict[str, bytes | str] = {"m.pth": saved(example_model("next_letter_model", "NextLetter"))}
    with packed("intermediate_streaming.py", "intermediate_streaming", "next_letter_model", files=files, **model) as m:
        first, second = m.predict([b"a", b"b"])
        [alone] = m.predict([b"a"])
    assert [first.failure, second.failure] == [None, None]
    words = first.body.decode().split(" ")
    assert [len(word) for word in words] == [2, 2, 0]
    assert len([chunk for chunk in first.chunks if chunk]) == 2
    assert first.complete
    assert alone.body == first.body


IDENTITY = "import torch\n\nclass Same(torch.nn.Module):\n    def forward(self, x):\n        return x\n"


def test_stateful(packed: Make) -> None:
    config = {"handler": {"cache": {"capacity": 2}}}
    files: dict[str, bytes | str] = {"same.py": IDENTITY}
    with packed("stateful.py", "stateful", files=files, config=config, modelFile="same.py") as model:
        [opened] = model.predict([b"1"], START)
        sums = [opened.json(), *(answers(model.predict([n], {SEQUENCE: "s"}))[0] for n in (b"2", b"4"))]
    assert opened.headers[SEQUENCE] == "s"
    assert sums == [1, 3, 7]


def test_sequences_in_continuous_batches(packed: Make) -> None:
    """An even number is answered once, an odd one as a stream until its criterion says so."""
    config = {"continuousBatching": True, "handler": {"cache": {}}}
    with packed("sequence_continuous.py", "sequence_continuous", config=config) as model:
        [opened] = model.predict([b"2"], START)
        [streamed] = model.predict([b"3"], {SEQUENCE: "s"})
    assert (opened.body, opened.complete) == (b"2", True)
    assert (streamed.chunks[:2], streamed.complete) == ([b"5", b"5"], True)
