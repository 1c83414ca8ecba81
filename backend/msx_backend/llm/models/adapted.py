"""What adapters add to a decoder's linear layers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from mindspore import Tensor, nn

from msx_backend.llm.models.adapter_shape import AdapterShape
from msx_backend.llm.models.kernels import Kernels, Projection
from msx_sdk.mindspore._weights import part
from msx_sdk.mindspore.parallel import Parallel

WHOLE = slice(None)
MOST_LAYERS = 3
"""With one input: queries, keys and values."""


class AdapterColumns(nn.Cell):  # type: ignore[misc]
    """Adapters of tokens [T], 0 for none -> 1 for each rank that is theirs, for one layer [T, width], for two with one
    input [T, 2 * width], and for three."""

    def __init__(self, shape: AdapterShape, kernels: Kernels) -> None:
        super().__init__()
        table = np.repeat(np.eye(shape.places + 1)[:, 1:], shape.rank, 1).astype(np.float32)
        layers = range(1, MOST_LAYERS + 1)
        self.tables = tuple(Tensor(np.tile(table, count)).astype(kernels.dtype) for count in layers)
        self.gather = kernels.gather()

    def construct(self, picks: Any) -> Any:
        columns: Any = ()
        for table in self.tables:
            columns = (*columns, self.gather(table, picks, 0))
        return columns


class AdaptedLayer(NamedTuple):
    """A linear layer that adapters change: a rank has the part of A and B that it has of the layer."""

    name: str
    inputs: slice
    outputs: slice


class AdaptedLinears(nn.Cell):  # type: ignore[misc]
    """Adapters of linear layers with one input. -> Their results, with what adapters add to them."""

    loads_inner = True

    def __init__(self, rank: int, layers: Sequence[AdaptedLayer | None], product: Any, add: Any) -> None:
        """`layers`: None for one that no adapter changes. `product`: of the others."""
        super().__init__()
        self.rank, self.product, self.add = rank, product, add
        self.layers = [it for it in layers if it is not None]
        self.places = tuple(-1 if it is None else self.layers.index(it) for it in layers)
        self.count = len(self.layers)

    def construct(self, x: Any, results: Any, columns: Any) -> Any:
        if not self.count:
            return results
        changes = self.product(x, columns[self.count - 1])
        made: Any = ()
        for number, place in enumerate(self.places):
            y = results[number]
            if place >= 0:
                y = self.add(y, changes[place])
            made = (*made, y)
        return made

    def load_shard(self, weights: Any, name: str) -> None:
        """There are none in the model's files."""
        if self.count:
            self.product.clear()

    def put(self, layer: int, place: int, pair: tuple[Any, Any] | None) -> None:
        """pair: A [rank, in] and B [out, rank] of the whole layer; None where the adapter leaves it as it is."""
        ranks = slice(place * self.rank, (place + 1) * self.rank)
        if pair is None:
            self.product.put(layer, ranks, np.zeros((1, 1), np.float32), np.zeros((1, 1), np.float32))
            return
        it, spare = self.layers[layer], self.rank - len(pair[0])
        a, b = pair[0][:, it.inputs], pair[1][it.outputs]
        self.product.put(layer, ranks, np.pad(a, ((0, spare), (0, 0))).T, np.pad(b, ((0, 0), (0, spare))).T)


def adapted_columns(
    shape: AdapterShape, kernels: Kernels, where: str, inputs: int, outputs: Mapping[str, Projection]
) -> AdaptedLinears:
    """Of layers that are divided by their outputs. `where`: their place in a decoder's layer."""
    made = {name: it for name, it in outputs.items() if name in shape.targets}
    layers = [
        AdaptedLayer(f"{where}.{name}", WHOLE, part(it.outputs, it.parallel.tp_size, it.parallel.tp_rank))
        if name in made
        else None
        for name, it in outputs.items()
    ]
    sizes = [it.outputs // it.parallel.tp_size for it in made.values()]
    product = kernels.low_rank(inputs, sizes, shape.width, None) if made else None
    return AdaptedLinears(shape.rank, layers, product, kernels.add())


def adapted_row(
    shape: AdapterShape, kernels: Kernels, name: str, inputs: int, outputs: int, parallel: Parallel
) -> AdaptedLinears | None:
    """Of a layer that is divided by its inputs; None if it gets none."""
    if name.rpartition(".")[2] not in shape.targets:
        return None
    reduce = kernels.reduce(parallel) if parallel.tp_size > 1 else None
    product = kernels.low_rank(inputs // parallel.tp_size, [outputs], shape.width, reduce)
    layer = AdaptedLayer(name, part(inputs, parallel.tp_size, parallel.tp_rank), WHOLE)
    return AdaptedLinears(shape.rank, [layer], product, kernels.add())
