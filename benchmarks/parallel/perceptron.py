"""The perceptron of benchmarks/handlers/mlp.py as a file of any size."""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from math import ceil, prod
from pathlib import Path

EXPANSION = 4
FLOAT = 4


@dataclass(frozen=True)
class Perceptron:
    """Blocks of [width, 4 width] and [4 width, width], float32, with biases."""

    width: int
    blocks: int

    @classmethod
    def of_size(cls, size: float, width: int) -> Perceptron:
        """No less than `size` bytes of matrices."""
        return cls(width, ceil(size / (2 * EXPANSION * width * width * FLOAT)))

    @property
    def hidden(self) -> int:
        return EXPANSION * self.width

    @property
    def size(self) -> int:
        """Bytes of all weights."""
        return sum(prod(shape) * FLOAT for shape in self.shapes().values())

    @property
    def replicated(self) -> int:
        """Bytes that every rank has: the biases that are added after the sum."""
        return self.blocks * self.width * FLOAT

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The tensors of the file by name."""
        block: dict[str, tuple[int, ...]] = {
            "up.weight": (self.width, self.hidden),
            "up.bias": (self.hidden,),
            "down.weight": (self.hidden, self.width),
            "down.bias": (self.width,),
        }
        return {f"blocks.{n}.{name}": shape for n in range(self.blocks) for name, shape in block.items()}

    def write(self, path: Path) -> None:
        """A safetensors file of zeros, sparse: it takes no disk, and what is read from it is memory all the same."""
        header, end = {}, 0
        for name, shape in self.shapes().items():
            begin, end = end, end + prod(shape) * FLOAT
            header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [begin, end]}
        text = json.dumps(header).encode()
        text += b" " * (-len(text) % 8)
        with path.open("wb") as file:
            file.write(struct.pack("<Q", len(text)) + text)
            file.truncate(8 + len(text) + end)
