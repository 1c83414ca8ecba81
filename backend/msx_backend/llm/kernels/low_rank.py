"""The products of adapters, for all of them at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn, ops
from mindspore.common.initializer import initializer

from msx_sdk.mindspore._loading import fill, load_shards

WHOLE = slice(None)
Place = tuple[slice, slice]


class AddedLowRank(nn.Cell):  # type: ignore[misc]
    """See `Kernels.adapted`."""

    loads_inner = True

    def __init__(self, linears: Any, changes: LowRank, add: Any) -> None:
        super().__init__()
        self.linears, self.changes, self.add = linears, changes, add
        self.count, self.row = len(changes.b), len(changes.b) == 1

    def construct(self, x: Any, columns: Any) -> Any:
        changes = self.changes(x, columns)
        if self.row:
            return (self.linears.summed(self.add(self.linears.product(x), changes[0])),)  # one sum over ranks for both
        results = self.linears(x)
        made: Any = ()
        for number in range(self.count):
            made = (*made, self.add(results[number], changes[number]))
        return made

    def load_shard(self, weights: Any, name: str) -> None:
        load_shards(self.linears, weights, name)
        self.changes.clear()

    def put(self, ranks: slice, both: Sequence[tuple[Any, Any]]) -> None:
        self.changes.put(ranks, both)


class LowRank(nn.Cell):  # type: ignore[misc]
    """Of linear layers with one input: x [T, in], columns -> (x A * columns) B of each layer [T, out].

    A and B have the adapters side by side, `width` ranks in all, and A has the layers side by side, too: one product
    for all of them. `columns` [T, width * layers] are 1 where a rank belongs to the adapter of the token's text: plain
    products for any mix of texts, instead of a gathered matrix for each of them.
    """

    def __init__(
        self,
        operators: Any,
        split: Any,
        inputs: int,
        outputs: Sequence[int],
        width: int,
        dtype: Any,
        *,
        flat: bool,
    ) -> None:
        """`split`: into one part for each layer. `flat`: weights lie as [out, in]."""
        super().__init__()
        self.width, self.flat, self.several = width, flat, len(outputs) > 1
        self.a = _weight("a", inputs, width * len(outputs), dtype, flat)
        self.b = nn.CellList([_Widening(operators, width, size, dtype, flat) for size in outputs])
        self.matmul, self.mul, self.split = operators.MatMul(transpose_b=flat), operators.Mul(), split

    def construct(self, x: Any, columns: Any) -> Any:
        inner = self.mul(self.matmul(x, self.a), columns)
        parts: Any = self.split(inner) if self.several else (inner,)
        made: Any = ()
        for number, b in enumerate(self.b):
            made = (*made, b(parts[number]))
        return made

    def clear(self) -> None:
        for parameter in (self.a, *(b.weight for b in self.b)):
            fill(parameter, np.zeros(parameter.shape, np.float32))

    def put(self, ranks: slice, both: Sequence[tuple[Any, Any]]) -> None:
        """a [in, ranks] and b [ranks, out] of each layer: replaces these ranks of its width, in place."""
        replace(self.a, columns_of(both, ranks, self.width), self.flat)
        for cell, (_, b) in zip(self.b, both, strict=True):
            replace(cell.weight, [((ranks, WHOLE), b)], self.flat)


def columns_of(both: Sequence[tuple[Any, Any]], ranks: slice, width: int) -> list[tuple[Place, Any]]:
    """The A of layers that lie side by side in one of `width` ranks a layer."""
    own = (slice(at * width + ranks.start, at * width + ranks.stop) for at in range(len(both)))
    return [((WHOLE, columns), a) for columns, (a, _) in zip(own, both, strict=True)]


def replace(parameter: Any, parts: Sequence[tuple[Place, Any]], flat: bool = False) -> None:
    """`parts`: places in [in, out], and their values. `flat`: the parameter is [out, in]."""
    whole = parameter.astype(ms.float32).asnumpy().copy()
    turned = whole.T if flat else whole
    for where, values in parts:
        turned[where] = values
    ops.assign(parameter, Tensor(whole).astype(parameter.dtype))  # compiled graphs do not see `set_data`


class _Widening(nn.Cell):  # type: ignore[misc]
    """B of one layer: [T, width] -> [T, out]."""

    def __init__(self, operators: Any, width: int, outputs: int, dtype: Any, flat: bool) -> None:
        super().__init__()
        self.weight, self.matmul = _weight("b", width, outputs, dtype, flat), operators.MatMul(transpose_b=flat)

    def construct(self, x: Any) -> Any:
        return self.matmul(x, self.weight)


def _weight(name: str, inputs: int, outputs: int, dtype: Any, flat: bool) -> Parameter:
    shape = (outputs, inputs) if flat else (inputs, outputs)
    return Parameter(initializer("zeros", shape, dtype), name=name)
