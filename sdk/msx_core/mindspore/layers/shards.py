"""Cells of which each rank holds a part."""

from typing import Literal

from mindspore import nn

from msx_core.errors import HandlerLoadError
from msx_core.mindspore.parallel import Parallel
from msx_core.mindspore.weights import Weights, part

Stored = Literal["out_in", "in_out"]
"""How a file lays out a weight."""


class ShardedCell(nn.Cell):  # type: ignore[misc]
    """`source` is the layer's name in the file, if it differs from its place in the network."""

    def __init__(self, parallel: Parallel, source: str | None) -> None:
        super().__init__()
        self.parallel, self.source = parallel, source

    def load_shard(self, weights: Weights, name: str) -> None:
        """Read this rank's part; `name` is the layer's place in the network. Raises HandlerLoadError."""
        raise NotImplementedError

    def _part(self, size: int) -> slice:
        return part(size, self.parallel.tp_size, self.parallel.tp_rank)


def check_divisible(key: str, size: int, parallel: Parallel) -> None:
    if size % parallel.tp_size:
        raise HandlerLoadError(f"{key}: {size} cannot be divided evenly over {parallel.tp_size} tensor-parallel ranks")


def check_shape(weights: Weights, name: str, wanted: tuple[int, ...]) -> None:
    if weights.shape(name) != wanted:
        raise HandlerLoadError(f"{name}: the file has the shape {weights.shape(name)}, the network {wanted}")
