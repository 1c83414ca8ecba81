"""Linear layers whose weights stay integers in memory.

A layer makes floats of its weights each time, in memory that the next one takes again. That is so only because its
first operator depends on the layer's input: else MindSpore would start those of all layers at once, as no input of
theirs comes from a layer before, and have all floats at the same time. Broadcasting kernels keep four buffers of their
result's size, for each layer, so that no operator broadcasts over a weight or over the rows of a prompt.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Parameter, nn, ops
from mindspore.common.initializer import initializer

from msx_core.mindspore.layers.shards import check_divisible
from msx_core.mindspore.loading import fill
from msx_core.mindspore.weights import Weights, part
from msx_llm.models.kernels import Projection
from msx_llm.models.quantised.format import LinearFormat, QuantisedMatrix
from msx_llm.models.quantised.matrix import ArrangedTensors, read_matrix
from msx_sdk.mindspore.layers import AllReduce, ColumnParallelLinear
from msx_sdk.mindspore.parallel import Parallel

BY_GROUPS = 16
"""Up to so many rows, each group's product is scaled; with more rows, the weights are."""


def stored(form: LinearFormat, inputs: int) -> tuple[int, Any]:
    """The rows and the type of codes in memory: two of 4 bits are a byte."""
    return (inputs // 2, ms.uint8) if form.bits == 4 else (inputs, ms.int8)


def in_bytes(codes: Any, groups: int) -> Any:
    """int8 [in, out], of 4 bits -> uint8 [in / 2, out]: a byte has those of an input and of the one half a group behind
    it."""
    lower, upper = np.split((codes + 8).astype(np.uint8).reshape(groups, -1, codes.shape[1]), 2, axis=1)
    return (upper * 16 + lower).reshape(-1, codes.shape[1])


def of_bytes(lower: Any, upper: Any, codes: Any, floor: Any) -> Any:
    """Both halves of x, and bytes as floats -> pairs of x' and weights, whose products add up to that of x and the
    codes: x is multiplied with the whole byte, and what is too much is taken from the other half's x."""
    return (lower, codes), (upper - lower * 16.0, floor(codes * 0.0625))


def scaled_zeros(matrix: QuantisedMatrix, nibbles: bool) -> Any:
    """float32 [groups, out]; in bytes, codes are from 0 on."""
    zeros = np.zeros_like(matrix.scales) if matrix.zeros is None else matrix.zeros
    return (zeros + 8 if nibbles else zeros) * matrix.scales


class Integers(nn.Cell):  # type: ignore[misc]
    """x [T, in] -> pairs of x' [T, groups, n] and weights [groups, n, out]. The sum of their products is that of x and
    the codes."""

    def __init__(self, form: LinearFormat, inputs: int, outputs: int) -> None:
        super().__init__()
        self.nibbles, self.groups = form.bits == 4, form.groups(inputs)
        self.size = inputs // self.groups
        rows, kind = stored(form, inputs)
        self.codes = Parameter(initializer("zeros", (rows, outputs), kind), name="codes")
        self.outputs, self.cast, self.depend, self.floor = outputs, ops.Cast(), ops.Depend(), ops.Floor()
        self.halves = ops.Split(2, 2)

    def construct(self, x: Any) -> Any:
        codes = self.cast(self.depend(self.codes, x), ms.float32).reshape((self.groups, -1, self.outputs))
        x = x.reshape((-1, self.groups, self.size))
        if not self.nibbles:
            return ((x, codes),)
        lower, upper = self.halves(x)
        return of_bytes(lower, upper, codes, self.floor)

    def put(self, codes: Any) -> None:
        """int8 [in, out]"""
        fill(self.codes, in_bytes(codes, self.groups) if self.nibbles else codes)


class PackedLinear(nn.Cell):  # type: ignore[misc]
    """x [..., in] -> [..., out] of one rank."""

    def __init__(self, form: LinearFormat, inputs: int, outputs: int, bias: bool) -> None:
        super().__init__()
        self.inputs, self.outputs, self.groups = inputs, outputs, form.groups(inputs)
        self.has_zeros, self.ordered, self.nibbles = form.zeros or form.bits == 4, form.ordered, form.bits == 4
        self.integers = Integers(form, inputs, outputs)
        self.scales = self._numbers("scales", (self.groups, 1, outputs))
        if self.has_zeros:
            self.zeros = self._numbers("zeros", (self.groups, outputs))
        if self.ordered:
            self.order = Parameter(initializer("zeros", (inputs,), ms.int32), name="order")
        self.has_bias = bias or form.brings_bias
        if self.has_bias:
            self.bias = self._numbers("bias", (outputs,))
        self.matmul, self.by_group, self.tile, self.depend = ops.MatMul(), ops.BatchMatMul(), ops.Tile(), ops.Depend()
        self.sum, self.add, self.mul, self.sub = ops.ReduceSum(), ops.BiasAdd(), ops.Mul(), ops.Sub()
        self.gather = ops.Gather()

    def construct(self, x: Any) -> Any:
        y = self.summed(self.product(x.reshape((-1, self.inputs))))
        return y.reshape((*x.shape[:-1], self.outputs))

    def summed(self, y: Any) -> Any:
        return self.add(y, self.bias) if self.has_bias else y

    def product(self, x: Any) -> Any:
        if self.ordered:
            x = self.gather(x, self.order, 1)
        if self.groups == 1:
            y = self._one_group(x)
        elif x.shape[0] <= BY_GROUPS:
            y = self._scaled_products(x)
        else:
            y = self._scaled_weights(x)
        if self.has_zeros:
            y = self.sub(
                y, self.matmul(self.sum(x.reshape((-1, self.groups, self.inputs // self.groups)), 2), self.zeros)
            )
        return y

    def _one_group(self, x: Any) -> Any:
        pairs = self.integers(x)
        y = self._plain(pairs[0])
        if self.nibbles:
            y = y + self._plain(pairs[1])
        scales = ops.reshape(self.scales, (1, self.outputs))
        return self.mul(y, self.tile(scales, (x.shape[0], 1)) if x.shape[0] > 1 else scales)

    def _scaled_products(self, x: Any) -> Any:
        pairs = self.integers(x)
        y = self._by_group(pairs[0])
        if self.nibbles:
            y = y + self._by_group(pairs[1])
        return self.sum(self.mul(y, self.tile(self.scales, (1, x.shape[0], 1))), 0)

    def _scaled_weights(self, x: Any) -> Any:
        pairs = self.integers(x)
        y = self._scaled(pairs[0])
        if self.nibbles:
            y = y + self._scaled(pairs[1])
        return y

    def _plain(self, pair: Any) -> Any:
        rows, weights = pair
        size = self.groups * weights.shape[1]
        return self.matmul(ops.reshape(rows, (-1, size)), ops.reshape(weights, (size, self.outputs)))

    def _by_group(self, pair: Any) -> Any:
        rows, weights = pair
        return self.by_group(ops.transpose(rows, (1, 0, 2)), weights)

    def _scaled(self, pair: Any) -> Any:
        rows, weights = pair
        scales = self.tile(self.depend(self.scales, weights), (1, weights.shape[1], 1))
        return self._plain((rows, self.mul(weights, scales)))

    def put(self, matrix: QuantisedMatrix, bias: Any) -> None:
        self.integers.put(matrix.codes)
        fill(self.scales, matrix.scales.reshape(self.scales.shape))
        if self.has_zeros:
            fill(self.zeros, scaled_zeros(matrix, self.nibbles))
        if self.ordered:
            fill(self.order, matrix.order)
        if self.has_bias:
            added = 0 if matrix.static is None else matrix.static.added
            fill(self.bias, added if bias is None else added + bias.astype(np.float32))

    def _numbers(self, name: str, shape: tuple[int, ...]) -> Parameter:
        return Parameter(initializer("zeros", shape, ms.float32), name=name)


class PackedColumns(PackedLinear):
    """Divided by its outputs."""

    loads_inner = True

    def __init__(self, form: LinearFormat, inputs: int, projection: Projection, bias: bool) -> None:
        parallel = projection.parallel
        check_divisible("out_features", projection.outputs, parallel)
        super().__init__(form, inputs, projection.outputs // parallel.tp_size, bias)
        self.form, self.own = form, part(projection.outputs, parallel.tp_size, parallel.tp_rank)
        self.biased = bias and not form.brings_bias

    def load_shard(self, weights: ArrangedTensors, name: str) -> None:
        bias = weights.read(f"{name}.bias", self.own) if self.biased else None
        self.put(read_matrix(weights, self.form, name, slice(0, self.inputs), self.own), bias)


class PackedRow(PackedLinear):
    """Divided by its inputs, and summed over the ranks."""

    loads_inner = True

    def __init__(self, form: LinearFormat, inputs: int, outputs: int, parallel: Parallel, bias: bool) -> None:
        check_divisible("in_features", inputs, parallel)
        super().__init__(form, inputs // parallel.tp_size, outputs, bias)
        self.form, self.own = form, part(inputs, parallel.tp_size, parallel.tp_rank)
        self.biased, self.reduce = bias and not form.brings_bias, AllReduce(parallel)

    def summed(self, y: Any) -> Any:
        return super().summed(self.reduce(y))

    def load_shard(self, weights: ArrangedTensors, name: str) -> None:
        bias = weights.read(f"{name}.bias") if self.biased else None
        self.put(read_matrix(weights, self.form, name, self.own, slice(0, self.outputs)), bias)


class PackedLinears(nn.Cell):  # type: ignore[misc]
    """Linear layers with one input, some of which are quantised: x [T, inputs] -> a tuple of [T, outputs]. Each waits
    for the one before, so that floats of two matrices are never there at once."""

    loads_inner = True

    def __init__(
        self,
        formats: Mapping[str, LinearFormat | None],
        inputs: int,
        outputs: Mapping[str, Projection],
        bias: bool,
        dtype: Any,
    ) -> None:
        super().__init__()
        self.names, self.depend = tuple(outputs), ops.Depend()
        self.linears = nn.CellList([_linear(inputs, it, bias, formats[name], dtype) for name, it in outputs.items()])

    def construct(self, x: Any) -> Any:
        results: Any = ()
        for linear in self.linears:
            result = linear(x)
            x, results = self.depend(x, result), (*results, result)
        return results

    def load_shard(self, weights: Weights, name: str) -> None:
        for own, linear in zip(self.names, self.linears, strict=True):
            linear.load_shard(weights, f"{name.rpartition('.')[0]}.{own}")


def _linear(inputs: int, it: Projection, bias: bool, form: LinearFormat | None, dtype: Any) -> nn.Cell:
    if form is None:
        return ColumnParallelLinear(inputs, it.outputs, it.parallel, bias=bias, dtype=dtype)
    return PackedColumns(form, inputs, it, bias)
