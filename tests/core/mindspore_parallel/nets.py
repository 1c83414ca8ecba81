"""Small networks. Imported in rank processes only, after MindSpore's set-up."""

from pathlib import Path
from typing import Any

from mindspore import nn, ops

from msx_sdk.mindspore.layers import (
    ColumnParallelLinear,
    RowParallelLinear,
    VocabParallelEmbedding,
    VocabParallelHead,
)
from msx_sdk.mindspore.parallel import Parallel
from tests.core.mindspore_parallel.shapes import BLOCKS, HIDDEN, VOCABULARY, WIDTH


class Block(nn.Cell):  # type: ignore[misc]
    def __init__(self, parallel: Parallel) -> None:
        super().__init__()
        self.norm = nn.LayerNorm((WIDTH,), begin_norm_axis=-1, begin_params_axis=-1)
        self.up = ColumnParallelLinear(WIDTH, HIDDEN, parallel)
        self.down = RowParallelLinear(HIDDEN, WIDTH, parallel)

    def construct(self, x: Any) -> Any:
        return x + self.down(ops.relu(self.up(self.norm(x))))


def language_model(parallel: Parallel) -> dict[str, Any]:
    """Token ids [rows, length] → logits [rows, length, VOCABULARY]."""
    blocks = {f"layers.{n}": Block(parallel) for n in range(BLOCKS)}
    first = {"embed": VocabParallelEmbedding(VOCABULARY, WIDTH, parallel)}
    return first | blocks | {"head": VocabParallelHead(VOCABULARY, WIDTH, parallel, source="embed")}


class Picky(nn.Cell):  # type: ignore[misc]
    """Passes on what it gets, except prompts of one length."""

    def __init__(self, length: int) -> None:
        super().__init__()
        self.length = length

    def construct(self, x: Any) -> Any:
        if x.shape[1] == self.length:
            raise ValueError("a prompt of this length is too much for me")
        return x


class Model(nn.Cell):  # type: ignore[misc]
    """The same as one cell."""

    def __init__(self, parallel: Parallel) -> None:
        super().__init__()
        cells = language_model(parallel)
        self.embed, self.head = cells.pop("embed"), cells.pop("head")
        self.layers = nn.CellList(list(cells.values()))

    def construct(self, ids: Any) -> Any:
        x = self.embed(ids)
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


def square_layers(layers: int, side: int, parallel: Parallel) -> Any:
    """Column- and row-parallel layers in turn."""
    kinds = (ColumnParallelLinear, RowParallelLinear)
    return nn.CellList([kinds[n % 2](side, side, parallel, bias=False) for n in range(layers)])


def one_rank(folder: Path) -> Model:
    """The whole model, undivided."""
    from msx_core.mindspore.loading import load_shards
    from msx_core.mindspore.weights import Weights

    model = Model(Parallel())
    with Weights(folder) as weights:
        load_shards(model, weights)
    return model
