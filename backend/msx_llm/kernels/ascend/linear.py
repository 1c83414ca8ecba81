"""Linear layers as NPUs want them: weights [out, in] as in files, one product for all with the same input."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Parameter, nn, ops
from mindspore.common.initializer import initializer

from msx_core.mindspore.layers.shards import check_divisible, check_shape
from msx_core.mindspore.loading import fill
from msx_core.mindspore.weights import Weights, part
from msx_llm.kernels.ascend import operators
from msx_llm.kernels.ascend.reduce import Reduce
from msx_llm.models.kernels import Projection
from msx_sdk.mindspore.layers import AllGather
from msx_sdk.mindspore.parallel import Parallel


class Linear(nn.Cell):  # type: ignore[misc]
    """x [T, in] -> [T, out]. `MatMul(transpose_b=True)` with a weight [out, in]: fused products are made of no other
    (MindSpore 2.10, ops/auto_generate; vllm-mindspore 0.5.1, layers/linear.py)."""

    def __init__(self, outputs: int, inputs: int, bias: bool, dtype: Any) -> None:
        super().__init__()
        self.weight = Parameter(initializer("zeros", (outputs, inputs), dtype), name="weight")
        self.has_bias = bias
        if bias:
            self.bias = Parameter(initializer("zeros", (outputs,), dtype), name="bias")
        self.matmul, self.add = operators.MatMul(transpose_b=True), operators.Add()

    def construct(self, x: Any) -> Any:
        y = self.matmul(x, self.weight)
        return self.add(y, self.bias) if self.has_bias else y


class FusedLinear(Linear):
    """Several column-parallel layers in one weight; each reads its rows of its own file's tensor."""

    def __init__(self, inputs: int, outputs: Mapping[str, Projection], bias: bool, dtype: Any) -> None:
        self.sizes = tuple(it.outputs // it.parallel.tp_size for it in outputs.values())
        super().__init__(sum(self.sizes), inputs, bias, dtype)
        self.inputs, self.outputs = inputs, dict(outputs)
        self.split = operators.SplitWithSize()
        for name, it in outputs.items():
            check_divisible(name, it.outputs, it.parallel)

    def construct(self, x: Any) -> Any:
        """-> a tuple of [T, out of each]"""
        return self.split(super().construct(x), self.sizes, -1)

    def load_shard(self, weights: Weights, name: str) -> None:
        names = {f"{name.rpartition('.')[0]}.{own}": it for own, it in self.outputs.items()}
        for file, it in names.items():
            check_shape(weights, f"{file}.weight", (it.outputs, self.inputs))
        fill(self.weight, np.concatenate([weights.read(f"{file}.weight", _own(it)) for file, it in names.items()]))
        if self.has_bias:
            fill(self.bias, np.concatenate([weights.read(f"{file}.bias", _own(it)) for file, it in names.items()]))


class RowLinear(Linear):
    """Divided by its inputs; the sum over the ranks, and after it the bias, once."""

    def __init__(self, inputs: int, outputs: int, parallel: Parallel, bias: bool, dtype: Any) -> None:
        check_divisible("in_features", inputs, parallel)
        super().__init__(outputs, inputs // parallel.tp_size, bias, dtype)
        self.full, self.own = (outputs, inputs), part(inputs, parallel.tp_size, parallel.tp_rank)
        self.reduce = Reduce(parallel)

    def construct(self, x: Any) -> Any:
        return self.summed(self.product(x))

    def product(self, x: Any) -> Any:
        return self.matmul(x, self.weight)

    def summed(self, y: Any) -> Any:
        y = self.reduce(y)
        return self.add(y, self.bias) if self.has_bias else y

    def load_shard(self, weights: Weights, name: str) -> None:
        check_shape(weights, f"{name}.weight", self.full)
        fill(self.weight, weights.read(f"{name}.weight", slice(None), self.own))
        if self.has_bias:
            fill(self.bias, weights.read(f"{name}.bias"))


class LogitsHead(Linear):
    """x [rows, width] -> logits float32 [rows, vocabulary] on every rank; the last rank's shard is padded."""

    def __init__(self, vocabulary: int, width: int, parallel: Parallel, dtype: Any) -> None:
        self.rows = -(-vocabulary // parallel.tp_size)
        super().__init__(self.rows, width, False, dtype)
        self.vocabulary, self.own = vocabulary, part(vocabulary, parallel.tp_size, parallel.tp_rank)
        self.gather, self.cast = AllGather(parallel), operators.Cast()

    def construct(self, x: Any) -> Any:
        return self.gather(self.cast(super().construct(x), ms.float32))[:, : self.vocabulary]

    def load_shard(self, weights: Weights, name: str) -> None:
        fill(self.weight, vocabulary_rows(weights, f"{name}.weight", self.own, self.rows))


class EvenSplit(nn.Cell):  # type: ignore[misc]
    """[T, width * parts] -> so many [T, width]."""

    def __init__(self, width: int, parts: int) -> None:
        super().__init__()
        self.split, self.sizes = operators.SplitWithSize(), (width,) * parts

    def construct(self, x: Any) -> Any:
        return self.split(x, self.sizes, -1)


class FlatEmbedding(nn.Cell):  # type: ignore[misc]
    """ids [T] -> [T, width]; a rank has the rows of its part of the vocabulary, and zeros for other ids."""

    def __init__(self, vocabulary: int, width: int, parallel: Parallel, dtype: Any) -> None:
        super().__init__()
        self.rows, self.shards = -(-vocabulary // parallel.tp_size), parallel.tp_size
        self.first, self.own = self.rows * parallel.tp_rank, part(vocabulary, parallel.tp_size, parallel.tp_rank)
        self.weight = Parameter(initializer("zeros", (self.rows, width), dtype), name="weight")
        self.gather, self.mul, self.cast = operators.Gather(), operators.Mul(), operators.Cast()
        self.reduce, self.dtype = Reduce(parallel), dtype

    def construct(self, ids: Any) -> Any:
        if self.shards == 1:
            return self.gather(self.weight, ids, 0)
        local = ids - self.first
        mine = self.cast(ops.logical_and(local >= 0, local < self.rows), self.dtype)
        rows = self.gather(self.weight, ops.clamp(local, 0, self.rows - 1), 0)
        return self.reduce(self.mul(rows, ops.expand_dims(mine, -1)))

    def load_shard(self, weights: Weights, name: str) -> None:
        fill(self.weight, vocabulary_rows(weights, f"{name}.weight", self.own, self.rows))


def vocabulary_rows(weights: Weights, name: str, own: slice, rows: int) -> Any:
    """A rank's rows of a tensor [vocabulary, width], padded with zeros where it has fewer."""
    array = weights.read(name, own)
    missing = rows - array.shape[0]
    return np.pad(array, ((0, missing), (0, 0))) if missing else array


def _own(projection: Projection) -> slice:
    parallel = projection.parallel
    return part(projection.outputs, parallel.tp_size, parallel.tp_rank)
