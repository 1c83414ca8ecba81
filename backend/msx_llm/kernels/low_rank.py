"""The products of adapters, for all of them at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn, ops
from mindspore.common.initializer import initializer

from msx_core.mindspore.loading import fill, load_shards

WHOLE = slice(None)
Place = tuple[slice, slice]


class FirstProducts(nn.Cell):  # type: ignore[misc]
    """First products of linear layers with one input: x [T, in], columns -> x A * columns of each layer [T, width].

    A has the adapters side by side, `width` ranks in all, and the layers side by side, too: one product for all of
    them. `columns` [T, width * layers] are 1 where a rank belongs to the adapter of the token's text: plain products
    for any mix of texts, instead of a gathered matrix for each of them.
    """

    def __init__(
        self, operators: Any, split: Any, inputs: int, layers: int, width: int, dtype: Any, *, flat: bool
    ) -> None:
        """`split`: into one part for each layer. `flat`: weights lie as [out, in]."""
        super().__init__()
        self.width, self.flat, self.several = width, flat, layers > 1
        self.a = weight("a", inputs, width * layers, dtype, flat)
        self.matmul, self.mul, self.split = operators.MatMul(transpose_b=flat), operators.Mul(), split

    def construct(self, x: Any, columns: Any) -> Any:
        inner = self.mul(self.matmul(x, self.a), columns)
        return self.split(inner) if self.several else (inner,)

    def clear(self) -> None:
        fill(self.a, np.zeros(self.a.shape, np.float32))

    def put(self, ranks: slice, both: Sequence[tuple[Any, Any]]) -> None:
        """a [in, ranks] of each layer: replaces these ranks of its width, in place."""
        own = (slice(at * self.width + ranks.start, at * self.width + ranks.stop) for at in range(len(both)))
        replace(self.a, [((WHOLE, columns), a) for columns, (a, _) in zip(own, both, strict=True)], self.flat)


class SecondProduct(nn.Cell):  # type: ignore[misc]
    """B of one layer: [T, width] -> [T, out]."""

    def __init__(self, operators: Any, width: int, outputs: int, dtype: Any, flat: bool) -> None:
        super().__init__()
        self.weight, self.matmul = weight("b", width, outputs, dtype, flat), operators.MatMul(transpose_b=flat)

    def construct(self, x: Any) -> Any:
        return self.matmul(x, self.weight)


class AddedLowRank(nn.Cell):  # type: ignore[misc]
    """See `Kernels.adapted`: a product of B for each layer, and a sum."""

    loads_inner = True

    def __init__(self, operators: Any, linears: Any, first: FirstProducts, outputs: Sequence[int], dtype: Any) -> None:
        super().__init__()
        self.linears, self.first, self.count, self.row = linears, first, len(outputs), len(outputs) == 1
        seconds = [SecondProduct(operators, first.width, size, dtype, first.flat) for size in outputs]
        self.seconds, self.add = nn.CellList(seconds), operators.Add()

    def construct(self, x: Any, columns: Any) -> Any:
        parts = self.first(x, columns)
        if self.row:  # one sum over ranks for both
            return (self.linears.summed(self.add(self.linears.product(x), self.seconds[0](parts[0]))),)
        results = self.linears(x)
        made: Any = ()
        for number in range(self.count):
            made = (*made, self.add(results[number], self.seconds[number](parts[number])))
        return made

    def load_shard(self, weights: Any, name: str) -> None:
        load_shards(self.linears, weights, name)
        self.first.clear()
        for second in self.seconds:
            fill(second.weight, np.zeros(second.weight.shape, np.float32))

    def put(self, ranks: slice, both: Sequence[tuple[Any, Any]]) -> None:
        self.first.put(ranks, both)
        for second, (_, b) in zip(self.seconds, both, strict=True):
            replace(second.weight, [((ranks, WHOLE), b)], self.first.flat)


def replace(parameter: Any, parts: Sequence[tuple[Place, Any]], flat: bool) -> None:
    """`parts`: places in [in, out], and their values. `flat`: the parameter is [out, in]."""
    whole = parameter.astype(ms.float32).asnumpy().copy()
    turned = whole.T if flat else whole
    for where, values in parts:
        turned[where] = values
    ops.assign(parameter, Tensor(whole).astype(parameter.dtype))  # compiled graphs do not see `set_data`


def weight(name: str, inputs: int, outputs: int, dtype: Any, flat: bool) -> Parameter:
    shape = (outputs, inputs) if flat else (inputs, outputs)
    return Parameter(initializer("zeros", shape, dtype), name=name)
