"""Three small networks for MindSpore on one CPU core, which gain differently from batching.

Nothing here is MSX's, so that any server can run the same.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

os.environ |= {"GLOG_v": "3", "OMP_NUM_THREADS": "1", "ONEDNN_MAX_CPU_ISA": "AVX2"}  # its AVX-512 convolution is slow
os.sched_setaffinity(0, range(os.cpu_count() or 1))  # all cores: the starting process leaves one of them free,
os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})  # the core for the net, as a device would be

import mindspore as ms  # noqa: E402
from mindspore import nn, ops  # noqa: E402

SHAPES = {"mlp": (784,), "cnn": (3, 32, 32), "transformer": (32, 128)}
"""Shapes of one request's float32 numbers."""


def perceptron() -> Any:
    return nn.SequentialCell(nn.Dense(784, 1024), nn.ReLU(), nn.Dense(1024, 1024), nn.ReLU(), nn.Dense(1024, 10))


def convnet() -> Any:
    def step(inputs: int, outputs: int, stride: int) -> list[Any]:
        return [nn.Conv2d(inputs, outputs, 3, stride, pad_mode="pad", padding=1), nn.ReLU()]

    layers = [*step(3, 32, 1), *step(32, 64, 1), *step(64, 64, 2), *step(64, 64, 1)]
    return nn.SequentialCell(*layers, nn.Flatten(), nn.Dense(64 * 16 * 16, 10))


class Attention(nn.Cell):  # type: ignore[misc]
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads, self.size = heads, width // heads
        self.norm, self.norm2 = nn.LayerNorm((width,)), nn.LayerNorm((width,))
        self.mix = nn.CellList([nn.Dense(width, width) for _ in range(4)])
        self.up, self.down = nn.Dense(width, 4 * width), nn.Dense(4 * width, width)

    def construct(self, x: Any) -> Any:
        batch, length, width = x.shape
        normed = self.norm(x)
        shape = (batch, length, self.heads, self.size)
        query, key, value = (part(normed).reshape(shape).transpose(0, 2, 1, 3) for part in self.mix[:3])
        weights = ops.softmax(ops.BatchMatMul(transpose_b=True)(query, key) * self.size**-0.5, -1)
        mixed = ops.BatchMatMul()(weights, value).transpose(0, 2, 1, 3).reshape((batch, length, width))
        x = x + self.mix[3](mixed)
        return x + self.down(ops.relu(self.up(self.norm2(x))))


def transformer() -> Any:
    return nn.SequentialCell(Attention(128, 4), Attention(128, 4), nn.Flatten(), nn.Dense(32 * 128, 10))


MAKERS: dict[str, Callable[[], Any]] = {"mlp": perceptron, "cnn": convnet, "transformer": transformer}


class Net:
    """Bytes of float32 in, bytes of float32 out, a batch of any size at a time; warm when it is made."""

    def __init__(self, name: str) -> None:
        ms.set_device("CPU")
        ms.set_seed(0)
        self._shape = SHAPES[name]
        self.size = 4 * int(np.prod(self._shape))
        """Bytes of a request."""
        self._graph = _compiled(MAKERS[name](), ms.Tensor(shape=(None, *self._shape), dtype=ms.float32))
        for size in (1, 2, 32):
            self([bytes(self.size)] * size)

    def __call__(self, bodies: Sequence[bytes | bytearray]) -> list[bytes]:
        rows = np.frombuffer(b"".join(bodies), np.float32).reshape(len(bodies), *self._shape)
        return [row.tobytes() for row in self._graph(ms.Tensor(rows)).asnumpy()]


def _compiled(net: Any, example: Any) -> Any:
    """Compiles through MindIR, as a deployed model: one graph for every batch size."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "net.mindir")
        ms.export(net.set_train(False), example, file_name=str(path), file_format="MINDIR")
        graph = nn.GraphCell(ms.load(str(path)))
    graph.set_inputs(example)
    return graph
