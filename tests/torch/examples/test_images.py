"""The examples of image classifiers and of a detector."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations
from pathlib import Path

import pytest

from tests.torch.examples.readme import Files, Readme
from tests.torch.examples.weights import model_of, weights
from tests.torch_models import png, saved, torch

torchvision = pytest.importorskip("torchvision")

pytestmark = [
    pytest.mark.torch,
    pytest.mark.e2e,
    pytest.mark.filterwarnings("ignore::UserWarning"),  # of the model files in a clone
]

FOLDER = "examples/image_classifier"
NAMES = f"{FOLDER}/index_to_name.json"
LABELS = json.dumps({str(number): [f"n{number}", f"label {number}"] for number in range(1000)})
MICRO = "batchSize: 32\nmicro_batching:\n  micro_batch_size: 4\n  parallelism: {preprocess: 2, postprocess: 2}\n"
PICTURES = {"croco": "green", "dog": "orange", "kitten": "white"}


def test_micro_batching(tmp_path: Path) -> None:
    model, kitten = f"{FOLDER}/resnet_18/model.py", f"{FOLDER}/kitten.jpg"
    files: Files = {
        model: "resnet_model.py",
        NAMES: LABELS,
        kitten: png("red"),
        "examples/micro_batching/micro_batching_handler.py": "micro_batching.py",
        "examples/micro_batching/config.yaml": MICRO,
    }
    readme = Readme(tmp_path, files)
    readme.write("resnet18-f37072fd.pth", weights(tmp_path / model))
    readme.types(
        f"torch-model-archiver --model-name resnet-18_mb --version 1.0 --model-file ./{model} "
        "--serialized-file resnet18-f37072fd.pth --handler examples/micro_batching/micro_batching_handler.py "
        f"--extra-files ./{NAMES} --config-file examples/micro_batching/config.yaml",
        "mkdir model_store",
        "mv resnet-18_mb.mar model_store/",
    )
    start = "torchserve --start --ncs --model-store model_store --models resnet-18_mb.mar"
    with readme.serves(f"{start} --disable-token-auth --enable-model-api") as served:
        image = readme.read(kitten)
        best = served.sends("/predictions/resnet-18_mb", image).json()
        with ThreadPoolExecutor(8) as pool:
            together = pool.map(lambda _: served.sends("/predictions/resnet-18_mb", image).json(), range(8))
        assert [max(one, key=one.get) for one in together] == [max(best, key=best.get)] * 8
    assert len(best) == 5


def test_resnet_152_batch(tmp_path: Path) -> None:
    """Three requests in one batch of a compiled model: the batch is awaited for 5 s."""
    folder = f"{FOLDER}/resnet_152_batch"
    model = f"{folder}/model.py"
    pictures = {f"{folder}/images/{name}.jpg": png(colour) for name, colour in PICTURES.items()}
    readme = Readme(tmp_path, {model: "resnet_model.py", NAMES: LABELS, **pictures})
    readme.write("resnet152-394f9c45.pth", weights(tmp_path / model))
    config = f"{folder}/model-config.yaml"
    readme.types(
        f'echo "pt2:\n  compile:\n    enable: True\n    backend: eager" > {config}',
        f"torch-model-archiver --model-name resnet-152-batch --version 1.0 --model-file {model} --serialized-file "
        f"resnet152-394f9c45.pth --handler image_classifier --extra-files {NAMES} --config-file {config}",
        "mkdir model-store",
        "mv resnet-152-batch.mar model-store/",
    )
    start = "torchserve --start --model-store model-store --disable-token-auth --enable-model-api"
    with readme.serves(start) as served:
        asked = "model_name=resnet152&url=resnet-152-batch.mar&batch_size=4&max_batch_delay=5000&initial_workers=1"
        assert served.management.post(f"/models?{asked}&synchronous=true").status_code == 200
        images = [readme.read(place) for place in pictures]
        with ThreadPoolExecutor(3) as pool:
            replies = [*pool.map(lambda image: served.sends("/predictions/resnet152", image).json(), images)]
        shown = served.management.get("/models/resnet152").json()[0]
    assert [len(one) for one in replies] == [5, 5, 5]
    assert (shown["batchSize"], shown["maxBatchDelay"]) == (4, 5000)


def test_fast_rcnn(tmp_path: Path) -> None:
    """torchvision's own nms leaves one box where many overlap."""
    model, names = "examples/object_detector/fast-rcnn/model.py", "examples/object_detector/index_to_name.json"
    persons = "examples/object_detector/persons.jpg"
    files: Files = {model: "rcnn_model.py", names: '{"1": "person"}', persons: png("red", (120, 90))}
    readme = Readme(tmp_path, files)
    network = model_of(tmp_path / model)
    network.roi_heads.box_predictor.cls_score.bias.data[1] = 20.0
    readme.write("fasterrcnn_resnet50_fpn_coco-258fb6c6.pth", saved(network.state_dict()))
    readme.types(
        f"torch-model-archiver --model-name fastrcnn --version 1.0 --model-file {model} --serialized-file "
        f"fasterrcnn_resnet50_fpn_coco-258fb6c6.pth --handler object_detector --extra-files {names}",
        "mkdir model_store",
        "mv fastrcnn.mar model_store/",
    )
    start = "torchserve --start --model-store model_store --models fastrcnn=fastrcnn.mar --disable-token-auth"
    with readme.serves(f"{start} --enable-model-api") as served:
        found = served.sends("/predictions/fastrcnn", readme.read(persons)).json()
    assert found
    assert all(set(one) == {"person", "score"} and one["score"] > 0.9 for one in found)
    boxes = torch.tensor([one["person"] for one in found])
    overlaps = torchvision.ops.box_iou(boxes, boxes)
    assert all(overlaps[first][second] <= 0.5 for first, second in combinations(range(len(found)), 2))
