"""Adapters whose B lie below the weights that they change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from mindspore import Tensor, nn, ops

from msx_core.mindspore.loading import load_shards
from msx_llm.kernels.low_rank import FirstProducts


class WidenedLinears(nn.Cell):  # type: ignore[misc]
    """See `Kernels.adapted`: [x, x A * columns] times [W; B] is a layer's result with what its adapters add.

    Of a sum over ranks each has its part by that, too. On a CPU each operator of a step takes time to start, and a
    decoder's layer has 17 for its adapters, where products and sums of their own would be 24.
    """

    loads_inner = True

    def __init__(self, cell: Any, linears: Sequence[Any], first: FirstProducts) -> None:
        """`cell` has the layers `linears`, and loads them."""
        super().__init__()
        self.cell, self.linears, self.count, self.first = cell, tuple(linears), len(linears), first
        for linear in linears:
            linear.widen(first.width)
        self.join = ops.Concat(-1)

    def construct(self, x: Any, columns: Any) -> Any:
        parts = self.first(x, columns)
        made: Any = ()
        for number in range(self.count):
            made = (*made, self.linears[number](self.join((x, parts[number]))))
        return made

    def load_shard(self, weights: Any, name: str) -> None:
        load_shards(self.cell, weights, name)
        self.first.clear()

    def put(self, ranks: slice, both: Sequence[tuple[Any, Any]]) -> None:
        self.first.put(ranks, both)
        for linear, (_, b) in zip(self.linears, both, strict=True):
            _put_rows(linear, ranks, b)


def _put_rows(linear: Any, ranks: slice, values: Any) -> None:
    """Put rows in place: a layer's weight is large, and compiled graphs do not see `set_data`."""
    first, weight = linear.local[0] - linear.spare, linear.weight
    rows = np.arange(first + ranks.start, first + ranks.stop, dtype=np.int32)
    values = np.broadcast_to(values, (len(rows), linear.local[1]))
    ops.scatter_update(weight, Tensor(rows), Tensor(np.ascontiguousarray(values)).astype(weight.dtype))
