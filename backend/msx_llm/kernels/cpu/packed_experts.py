"""Experts whose weights stay integers in memory: of a step's blocks, those of their experts are made floats."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Parameter, nn, ops
from mindspore.common.initializer import initializer

from msx_core.mindspore.loading import fill
from msx_llm.kernels.cpu.experts import BlockedExperts
from msx_llm.kernels.cpu.packed import in_bytes, of_bytes, scaled_zeros, stored
from msx_llm.models.quantised.format import LinearFormat, QuantisedMatrix


class PackedStack(nn.Cell):  # type: ignore[misc]
    """A matrix [in, out] of each expert. x [blocks, size, in] and the expert of each block -> [blocks, size, out]; each
    group of inputs is a product, of which the result is scaled."""

    def __init__(self, form: LinearFormat, count: int, inputs: int, outputs: int) -> None:
        super().__init__()
        self.groups, self.inputs, self.outputs = form.groups(inputs), inputs, outputs
        self.nibbles, self.has_zeros = form.bits == 4, form.zeros or form.bits == 4
        rows, kind = stored(form, inputs)
        self.codes = Parameter(initializer("zeros", (count, rows, outputs), kind), name="codes")
        self.scales = self._numbers("scales", count)
        if self.has_zeros:
            self.zeros = self._numbers("zeros", count)
        self.gather, self.cast, self.product, self.floor = ops.Gather(), ops.Cast(), ops.BatchMatMul(), ops.Floor()
        self.halves, self.tile, self.sum, self.sub = ops.Split(2, 2), ops.Tile(), ops.ReduceSum(), ops.Sub()

    def construct(self, x: Any, experts: Any) -> Any:
        size = x.shape[1]
        grouped = x.reshape((-1, size, self.groups, self.inputs // self.groups))
        rows = grouped.transpose((0, 2, 1, 3)).reshape((-1, size, self.inputs // self.groups))
        scales = self.gather(self.scales, experts, 0).reshape((-1, 1, self.outputs))
        y = self.integers(rows, experts) * self.tile(scales, (1, size, 1))
        y = self.sum(y.reshape((-1, self.groups, size, self.outputs)), 1)
        if self.has_zeros:
            y = self.sub(y, self.product(self.sum(grouped, 3), self.gather(self.zeros, experts, 0)))
        return y

    def integers(self, rows: Any, experts: Any) -> Any:
        """rows [blocks * groups, size, n]: the sum of their products with the codes."""
        codes = self.cast(self.gather(self.codes, experts, 0), ms.float32)
        codes = codes.reshape((rows.shape[0], -1, self.outputs))
        if not self.nibbles:
            return self.product(rows, codes)
        lower, upper = self.halves(rows)
        first, second = of_bytes(lower, upper, codes, self.floor)
        return self.product(first[0], first[1]) + self.product(second[0], second[1])

    def put(self, matrices: Iterator[QuantisedMatrix]) -> None:
        """Store the matrices of all experts, in their order."""
        codes = np.empty(self.codes.shape, np.uint8 if self.nibbles else np.int8)
        scales, zeros = (np.empty(self.scales.shape, np.float32) for _ in range(2))
        for expert, matrix in enumerate(matrices):
            codes[expert] = in_bytes(matrix.codes, self.groups) if self.nibbles else matrix.codes
            scales[expert], zeros[expert] = matrix.scales, scaled_zeros(matrix, self.nibbles)
        fill(self.codes, codes)
        fill(self.scales, scales)
        if self.has_zeros:
            fill(self.zeros, zeros)

    def _numbers(self, name: str, count: int) -> Parameter:
        return Parameter(initializer("zeros", (count, self.groups, self.outputs), ms.float32), name=name)


class PackedExperts(BlockedExperts):
    def make(self, up: tuple[int, int], down: tuple[int, int], dtype: Any) -> None:
        assert self.form is not None
        self.gate_up, self.down = (PackedStack(self.form, self.count, *shape) for shape in (up, down))

    def compute(self, x: Any, experts: Any, size: int) -> Any:
        gate, up = self.halves(self.gate_up(x.reshape((-1, size, self.hidden)), experts))
        return self.down(self.gate(gate, up), experts).reshape((-1, self.hidden))

    def load_shard(self, weights: Any, name: str) -> None:
        self.load_integers(weights, name)
