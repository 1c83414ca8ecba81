"""`python -m benchmarks.utilisation.exported NAME FILE`: a network of MindSpore's with random weights, as MindIR."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NamedTuple

PICTURE = 64
"""Pixels of an image's side."""


class Exported(NamedTuple):
    shape: tuple[int, ...]
    """Shape of one request's float32 numbers."""
    make: Callable[[Any], Any]
    """Makes the network with `mindspore.nn`."""


def _perceptron(width: int, hidden: int) -> Exported:
    def make(nn: Any) -> Any:
        layers = [nn.Dense(width, hidden), nn.ReLU(), nn.Dense(hidden, hidden), nn.ReLU(), nn.Dense(hidden, 10)]
        return nn.SequentialCell(*layers)

    return Exported((width,), make)


def _pictures(nn: Any) -> Any:
    def convolution(inputs: int, outputs: int, stride: int) -> list[Any]:
        return [nn.Conv2d(inputs, outputs, 3, stride, pad_mode="pad", padding=1), nn.ReLU()]

    layers = [*convolution(3, 16, 2), *convolution(16, 32, 2), *convolution(32, 32, 2)]
    return nn.SequentialCell(*layers, nn.Flatten(), nn.Dense(32 * (PICTURE // 8) ** 2, 10))


NETWORKS = {
    "small": _perceptron(128, 256),
    "large": _perceptron(784, 2048),
    "pictures": Exported((3, PICTURE, PICTURE), _pictures),
}


def main() -> None:
    import mindspore as ms

    name, file = sys.argv[1:]
    ms.set_device("CPU")
    ms.set_seed(0)
    shape, make = NETWORKS[name]
    example = ms.Tensor(shape=(None, *shape), dtype=ms.float32)
    ms.export(make(ms.nn).set_train(False), example, file_name=file, file_format="MINDIR")


if __name__ == "__main__":
    main()
