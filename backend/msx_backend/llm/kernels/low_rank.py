"""The product of a linear layer's adapters, for all of them at once."""

from __future__ import annotations

from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn, ops
from mindspore.common.initializer import initializer

from msx_sdk.mindspore._loading import fill


class LowRank(nn.Cell):  # type: ignore[misc]
    """x [T, in], y [T, out], columns [T, width] -> y + (x A * columns) B.

    A and B have the adapters side by side, `width` ranks in all. `columns` is 1 where a rank belongs to the adapter of
    the token's text: two plain products for any mix of texts, instead of a gathered matrix for each of them.
    """

    def __init__(self, operators: Any, inputs: int, outputs: int, width: int, reduce: Any, dtype: Any, flat: bool):
        """`reduce`: the sum over the ranks where the inputs are divided, or None. `flat`: weights lie as [out, in]."""
        super().__init__()
        self.flat, self.sums = flat, reduce is not None
        sizes = {"a": (inputs, width), "b": (width, outputs)}
        self.a, self.b = (
            Parameter(initializer("zeros", size[::-1] if flat else size, dtype), name=name)
            for name, size in sizes.items()
        )
        self.matmul, self.mul, self.add = operators.MatMul(transpose_b=flat), operators.Mul(), operators.Add()
        if self.sums:
            self.reduce = reduce

    def construct(self, x: Any, y: Any, columns: Any) -> Any:
        inner = self.matmul(x, self.a)
        if self.sums:
            inner = self.reduce(inner)
        return self.add(y, self.matmul(self.mul(inner, columns), self.b))

    def clear(self) -> None:
        for parameter in (self.a, self.b):
            fill(parameter, np.zeros(parameter.shape, np.float32))

    def put(self, ranks: slice, a: Any, b: Any) -> None:
        """a [in, ranks], b [ranks, out]: replaces these ranks of the width, in place."""
        whole_a, whole_b = _array(self.a), _array(self.b)
        if self.flat:
            whole_a[ranks], whole_b[:, ranks] = a.T, b.T
        else:
            whole_a[:, ranks], whole_b[ranks] = a, b
        for parameter, whole in ((self.a, whole_a), (self.b, whole_b)):
            ops.assign(parameter, Tensor(whole).astype(parameter.dtype))  # compiled graphs do not see `set_data`


def _array(parameter: Any) -> Any:
    return parameter.astype(ms.float32).asnumpy().copy()
