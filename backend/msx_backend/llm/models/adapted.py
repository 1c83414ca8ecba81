"""What adapters add to a decoder's linear layers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from mindspore import Tensor, nn

from msx_backend.llm.models.adapter_shape import AdapterShape
from msx_backend.llm.models.kernels import Kernels, Projection
from msx_sdk.mindspore._weights import part
from msx_sdk.mindspore.parallel import Parallel

WHOLE = slice(None)


class AdapterColumns(nn.Cell):  # type: ignore[misc]
    """Adapters of tokens [T], 0 for none -> 1 for each rank that is theirs [T, width]."""

    def __init__(self, shape: AdapterShape, kernels: Kernels) -> None:
        super().__init__()
        table = np.repeat(np.eye(shape.places + 1)[:, 1:], shape.rank, 1)
        self.table, self.gather = Tensor(table.astype(np.float32)).astype(kernels.dtype), kernels.gather()

    def construct(self, picks: Any) -> Any:
        return self.gather(self.table, picks, 0)


class AdaptedLinear(nn.Cell):  # type: ignore[misc]
    """Adapters of one linear layer: a rank has the part of A and B that it has of the layer."""

    def __init__(self, name: str, rank: int, own: tuple[slice, slice], product: Any) -> None:
        """`own`: this rank's inputs and outputs."""
        super().__init__()
        self.layer, self.rank, self.own, self.product = name, rank, own, product

    def construct(self, x: Any, y: Any, columns: Any) -> Any:
        return self.product(x, y, columns)

    loads_inner = True

    def load_shard(self, weights: Any, name: str) -> None:
        """There are none in the model's files."""
        self.product.clear()

    def put(self, place: int, pair: tuple[Any, Any] | None) -> None:
        """pair: A [rank, in] and B [out, rank] of the whole layer; None where the adapter leaves it as it is."""
        ranks = slice(place * self.rank, (place + 1) * self.rank)
        if pair is None:
            self.product.put(ranks, np.zeros((1, 1), np.float32), np.zeros((1, 1), np.float32))
            return
        (inputs, outputs), spare = self.own, self.rank - len(pair[0])
        a, b = pair[0][:, inputs], pair[1][outputs]
        self.product.put(ranks, np.pad(a, ((0, spare), (0, 0))).T, np.pad(b, ((0, 0), (0, spare))).T)


class AdaptedColumns(nn.Cell):  # type: ignore[misc]
    """Adapters of layers with one input, divided by their outputs."""

    def __init__(
        self, shape: AdapterShape, kernels: Kernels, where: str, inputs: int, outputs: Mapping[str, Projection]
    ):
        """`where`: the place of the layers in a decoder's layer."""
        super().__init__()
        made = [name for name in outputs if name in shape.targets]
        self.places = tuple(made.index(name) if name in made else -1 for name in outputs)
        self.linears = nn.CellList(
            [self._linear(shape, kernels, f"{where}.{name}", inputs, outputs[name]) for name in made]
        )

    def construct(self, x: Any, results: Any, columns: Any) -> Any:
        made: Any = ()
        for number, place in enumerate(self.places):
            y = results[number]
            if place >= 0:
                y = self.linears[place](x, y, columns)
            made = (*made, y)
        return made

    def _linear(self, shape: AdapterShape, kernels: Kernels, name: str, inputs: int, it: Projection) -> AdaptedLinear:
        own = part(it.outputs, it.parallel.tp_size, it.parallel.tp_rank)
        product = kernels.low_rank(inputs, it.outputs // it.parallel.tp_size, shape.width, None)
        return AdaptedLinear(name, shape.rank, (WHOLE, own), product)


def adapted_row(
    shape: AdapterShape, kernels: Kernels, name: str, inputs: int, outputs: int, parallel: Parallel
) -> AdaptedLinear | None:
    """Adapters of a layer that is divided by its inputs; None if it gets none."""
    if name.rpartition(".")[2] not in shape.targets:
        return None
    reduce = kernels.reduce(parallel) if parallel.tp_size > 1 else None
    product = kernels.low_rank(inputs // parallel.tp_size, outputs, shape.width, reduce)
    return AdaptedLinear(name, shape.rank, (part(inputs, parallel.tp_size, parallel.tp_rank), WHOLE), product)
