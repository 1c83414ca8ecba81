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
NO_CHANGE = np.zeros((1, 1), np.float32)
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

    def __init__(self, rank: int, layers: Sequence[AdaptedLayer], product: Any, add: Any) -> None:
        super().__init__()
        self.rank, self.layers, self.count = rank, layers, len(layers)
        self.product, self.add = product, add

    def construct(self, x: Any, results: Any, columns: Any) -> Any:
        changes = self.product(x, columns[self.count - 1])
        made: Any = ()
        for number in range(self.count):
            made = (*made, self.add(results[number], changes[number]))
        return made

    def load_shard(self, weights: Any, name: str) -> None:
        """There are none in the model's files."""
        self.product.clear()

    def put(self, place: int, pairs: Sequence[tuple[Any, Any] | None]) -> None:
        """pairs: of each layer A [rank, in] and B [out, rank], whole; None where the adapter leaves it as it is."""
        both = [self._own(layer, pair) for layer, pair in zip(self.layers, pairs, strict=True)]
        self.product.put(slice(place * self.rank, (place + 1) * self.rank), both)

    def _own(self, layer: AdaptedLayer, pair: tuple[Any, Any] | None) -> tuple[Any, Any]:
        """-> [in, rank], [rank, out] of this rank; what a smaller rank leaves free is 0."""
        if pair is None:
            return NO_CHANGE, NO_CHANGE
        spare = self.rank - len(pair[0])
        a, b = pair[0][:, layer.inputs], pair[1][layer.outputs]
        return np.pad(a, ((0, spare), (0, 0))).T, np.pad(b, ((0, 0), (0, spare))).T


def adapted_columns(
    shape: AdapterShape, kernels: Kernels, where: str, inputs: int, outputs: Mapping[str, Projection]
) -> AdaptedLinears | None:
    """Of layers that are divided by their outputs, at this place in a decoder's layer; None if they get none."""
    if not shape.targets.issuperset(outputs):
        return None
    layers = [
        AdaptedLayer(f"{where}.{name}", WHOLE, part(it.outputs, it.parallel.tp_size, it.parallel.tp_rank))
        for name, it in outputs.items()
    ]
    sizes = [it.outputs // it.parallel.tp_size for it in outputs.values()]
    return AdaptedLinears(shape.rank, layers, kernels.low_rank(inputs, sizes, shape.width, None), kernels.add())


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
