"""Linear layers of a decoder that adapters change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from mindspore import Tensor, nn

from msx_core.mindspore.loading import load_shards
from msx_core.mindspore.weights import part
from msx_llm.models.adapter_shape import AdapterShape
from msx_llm.models.kernels import Kernels, Projection
from msx_sdk.mindspore.parallel import Parallel

WHOLE = slice(None)
NO_CHANGE = np.zeros((1, 1), np.float32)
MOST_LAYERS = 3
"""Layers with one input: queries, keys and values."""


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
    """Linear layers with one input, and their adapters. -> A tuple of their results, with what adapters add."""

    loads_inner = True

    def __init__(self, rank: int, layers: Sequence[AdaptedLayer], adapted: Any) -> None:
        """`adapted`: see `Kernels.adapted`."""
        super().__init__()
        self.rank, self.layers, self.count, self.adapted = rank, layers, len(layers), adapted

    def construct(self, x: Any, columns: Any) -> Any:
        return self.adapted(x, columns[self.count - 1])

    def load_shard(self, weights: Any, name: str) -> None:
        """The model's files have no adapters."""
        load_shards(self.adapted, weights, name)

    def put(self, place: int, pairs: Sequence[tuple[Any, Any] | None]) -> None:
        """pairs: of each layer A [rank, in] and B [out, rank], whole; None where the adapter leaves it as it is."""
        both = [self._own(layer, pair) for layer, pair in zip(self.layers, pairs, strict=True)]
        self.adapted.put(slice(place * self.rank, (place + 1) * self.rank), both)

    def _own(self, layer: AdaptedLayer, pair: tuple[Any, Any] | None) -> tuple[Any, Any]:
        """-> [in, rank], [rank, out] of this rank; what a smaller rank leaves free is 0."""
        if pair is None:
            return NO_CHANGE, NO_CHANGE
        spare = self.rank - len(pair[0])
        a, b = pair[0][:, layer.inputs], pair[1][layer.outputs]
        return np.pad(a, ((0, spare), (0, 0))).T, np.pad(b, ((0, 0), (0, spare))).T


def adapted_columns(
    shape: AdapterShape, kernels: Kernels, linears: Any, where: str, inputs: int, outputs: Mapping[str, Projection]
) -> AdaptedLinears:
    """`linears`: layers that are divided by their outputs, at this place in a decoder's layer."""
    layers = [
        AdaptedLayer(f"{where}.{name}", WHOLE, part(it.outputs, it.parallel.tp_size, it.parallel.tp_rank))
        for name, it in outputs.items()
    ]
    sizes = [it.outputs // it.parallel.tp_size for it in outputs.values()]
    return AdaptedLinears(shape.rank, layers, kernels.adapted(linears, inputs, sizes, shape.width))


def adapted_row(
    shape: AdapterShape, kernels: Kernels, linear: Any, name: str, inputs: int, outputs: int, parallel: Parallel
) -> AdaptedLinears:
    """`linear`: a layer that is divided by its inputs."""
    adapted = kernels.adapted(linear, inputs // parallel.tp_size, [outputs], shape.width)
    layer = AdaptedLayer(name, part(inputs, parallel.tp_size, parallel.tp_rank), WHOLE)
    return AdaptedLinears(shape.rank, [layer], adapted)
