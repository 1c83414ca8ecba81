"""Trains a small CNN on digits that it draws, and exports it as a MindIR that takes any number of images."""

import argparse
import json
import os
from pathlib import Path
from typing import Any

os.environ.setdefault("GLOG_v", "3")
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX2")  # oneDNN's AVX-512 convolution is its slow reference

import mindspore as ms
import numpy as np
from drawing import NAMES, make
from mindspore import Tensor, nn
from PIL import Image

SIZE = 8
Array = np.ndarray[Any, Any]


class Net(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.SequentialCell(
            nn.Conv2d(1, 16, 3), nn.ReLU(), nn.Conv2d(16, 32, 3), nn.ReLU(), nn.MaxPool2d(2, 2),
            nn.Flatten(), nn.Dense(32 * 4 * 4, 64), nn.ReLU(), nn.Dense(64, len(NAMES)),
        )  # fmt: skip

    def construct(self, image: Tensor) -> Tensor:
        return self.layers(image)


def train(net: Net, images: Array, labels: Array, epochs: int = 4, size: int = 32) -> None:
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    step = nn.TrainOneStepCell(nn.WithLossCell(net, loss), nn.Adam(net.trainable_params(), 2e-3))
    step.set_train()
    random = np.random.default_rng(0)
    for epoch in range(1, epochs + 1):
        chosen = random.permutation(len(images))[: len(images) // size * size].reshape(-1, size)
        total = sum(float(step(Tensor(images[batch]), Tensor(labels[batch]))) for batch in chosen)
        print(f"epoch {epoch}/{epochs}  loss {total / len(chosen):.3f}", flush=True)


def accuracy(net: Net, images: Array, labels: Array) -> float:
    net.set_train(False)
    return float((net(Tensor(images)).asnumpy().argmax(-1) == labels).mean())


def export(net: Net, folder: Path) -> None:
    anything = Tensor(shape=[None, 1, SIZE, SIZE], dtype=ms.float32)
    net.set_inputs(anything)
    ms.export(net, anything, file_name=str(folder / "digits"), file_format="MINDIR")
    (folder / "index_to_name.json").write_text(json.dumps(dict(enumerate(NAMES)), indent=2) + "\n")


def write_images(images: list[Image.Image], labels: Array, folder: Path) -> None:
    """The first test image of every digit."""
    for digit, name in enumerate(NAMES):
        images[int((labels == digit).argmax())].save(folder / f"{name}.png")


def stacked(images: list[Image.Image]) -> Array:
    """As the network takes them, scaled as `image:` in model-config.yaml says."""
    small = [image.resize((SIZE, SIZE), Image.Resampling.BOX) for image in images]
    return np.stack([np.asarray(image, np.float32)[None] / 255 for image in small])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "build")
    folder = parser.parse_args().out
    folder.mkdir(exist_ok=True)
    ms.set_seed(0)
    ms.set_context(mode=ms.GRAPH_MODE)
    (images, labels), (test_images, test_labels) = make(1600, seed=1), make(400, seed=2)
    net = Net()
    train(net, stacked(images), labels)
    reached = accuracy(net, stacked(test_images), test_labels)
    print(f"test accuracy {reached:.1%} on {len(test_labels)} images that training did not see")
    if reached < 0.97:
        raise SystemExit("expected at least 97 %")
    export(net, folder)
    write_images(test_images, test_labels, folder)


if __name__ == "__main__":
    main()
