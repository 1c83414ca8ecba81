"""The examples of MNIST: digits, and metrics of one's own."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.e2e.server import wait_until
from tests.torch.examples.readme import Files, Readme, Served
from tests.torch.examples.weights import model_of, weights
from tests.torch_models import digit_image, digit_of

pytest.importorskip("torchvision")

pytestmark = [
    pytest.mark.torch,
    pytest.mark.e2e,
    pytest.mark.filterwarnings("ignore::UserWarning"),  # of the model files in a clone
]

FOLDER = "examples/image_classifier/mnist"
MODEL = f"{FOLDER}/mnist.py"
PACKS = f"torch-model-archiver --model-name mnist --version 1.0 --model-file {MODEL} "
FILES: Files = {
    MODEL: "../cnn_model.py",
    f"{FOLDER}/mnist_handler.py": "mnist.py",
    f"{FOLDER}/test_data/0.png": digit_image(3),
}
METRICS = """
dimensions: [&model ModelName, &level Level, &host Hostname]
ts_metrics:
  counter:
    - {name: ts_inference_requests_total, unit: Count, dimensions: [model_name, model_version, hostname]}
model_metrics:
  counter:
    - {name: InferenceRequestCount, unit: count, dimensions: []}
    - {name: InitializeCallCount, unit: count, dimensions: [*model, *level]}
    - {name: PreprocessCallCount, unit: count, dimensions: [*model]}
    - {name: PostprocessCallCount, unit: CallCount, dimensions: [*model, *level]}
  gauge:
    - {name: RequestBatchSize, unit: count, dimensions: [*model]}
    - {name: SizeOfImage, unit: kB, dimensions: [*model, *level]}
"""
PROPERTIES = r"""
metrics_mode=prometheus
metrics_config=examples/custom_metrics/metrics.yaml
model_metrics_auto_detect=true
models={"mnist": {"1.0": {"defaultVersion": true, "marName": "mnist.mar", "minWorkers": 1, "maxWorkers": 1}}}
"""

ONCE = {
    *("InferenceRequestCount", "InitializeCallCount", "PreprocessCallCount", "PostprocessCallCount"),
    *("RequestBatchSize", "ExamplePercentMetric_count"),
}


def laid(folder: Path, files: Files) -> Readme:
    readme = Readme(folder, files)
    readme.write(f"{FOLDER}/mnist_cnn.pt", weights(folder / MODEL))
    return readme


def test_mnist(tmp_path: Path) -> None:
    readme = laid(tmp_path, FILES)
    image = readme.read(f"{FOLDER}/test_data/0.png")
    digit = digit_of(model_of(tmp_path / MODEL), image, 0.1307, 0.3081)
    readme.types(
        f"{PACKS} --serialized-file {FOLDER}/mnist_cnn.pt --handler {FOLDER}/mnist_handler.py",
        "mkdir model_store",
        "mv mnist.mar model_store/",
    )
    start = "torchserve --start --model-store model_store --models mnist=mnist.mar --ts-config config.properties"
    with readme.serves(f"{start} --disable-token-auth --enable-model-api") as served:
        assert served.sends("/predictions/mnist", image).json() == digit
        assert served.inference.post("/predictions/mnist", files={"data": ("0.png", image)}).json() == digit
        explained = served.sends("/explanations/mnist", image).json()
    assert [len(channel) for channel in explained] == [28]


def test_custom_metrics(tmp_path: Path) -> None:
    folder = "examples/custom_metrics"
    files = {
        f"{folder}/mnist_handler.py": "custom_metrics.py",
        f"{folder}/metrics.yaml": METRICS,
        f"{folder}/config.properties": PROPERTIES,
    }
    readme = laid(tmp_path, {**FILES, **files})
    readme.types(
        f"{PACKS} --serialized-file {FOLDER}/mnist_cnn.pt --handler {folder}/mnist_handler.py",
        "mkdir model_store",
        "mv mnist.mar model_store/",
    )
    config = f"{folder}/config.properties"
    start = f"torchserve --ncs --start --model-store model_store --ts-config {config} --models mnist=mnist.mar"
    with readme.serves(f"{start} --disable-token-auth", properties=config) as served:
        image = readme.read(f"{FOLDER}/test_data/0.png")
        served.sends("/predictions/mnist", image)
        wait_until(lambda: measured(served).keys() >= ONCE, "the worker has told of it")
        found = measured(served)
    assert {name: found[name] for name in ONCE} == dict.fromkeys(ONCE, 1)
    assert found["SizeOfImage"] == len(image) / 1024
    assert found["HandlerMethodTime"] > 0


def measured(served: Served) -> dict[str, float]:
    shown = served.metrics.get("/metrics").text
    return {name: float(value) for name, value in re.findall(r"^(\w+)\{.*\} (\S+)$", shown, re.MULTILINE)}
