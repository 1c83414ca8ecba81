"""Products of 16-bit matrices: summed in float32, rounded once."""

from __future__ import annotations

from typing import Any

import mindspore as ms
from mindspore import Tensor

from tests.emulated_ascend.host import floats, tensor
from tests.emulated_ascend.operator import HALF, Operator


class BatchMatMul(Operator):
    def __init__(self, transpose_a: bool = False, transpose_b: bool = False) -> None:
        self.transpose_a, self.transpose_b = transpose_a, transpose_b

    def compute(self, x: Any, y: Any) -> Tensor:
        """One product for each of the first axis."""
        self.constant(transpose_a=False, transpose_b=(False, True))
        self.tensor("x", x, HALF, 3)
        self.tensor("y", y, HALF, 3)
        self.same_dtype("y", y, "x", x)
        inner = y.shape[2 if self.transpose_b else 1]
        self.require(x.shape[2] == inner, "x", x, f"its width must be that of y, {inner}")
        self.require(x.shape[0] == y.shape[0], "x", x, f"it must be as many as y, {y.shape[0]}")
        right = floats(y)
        return tensor(floats(x) @ (right.swapaxes(1, 2) if self.transpose_b else right), x.dtype)


class MatMul(Operator):
    def __init__(self, transpose_a: bool = False, transpose_b: bool = False) -> None:
        self.transpose_a, self.transpose_b = transpose_a, transpose_b

    def compute(self, input: Any, mat2: Any) -> Tensor:
        self.constant(transpose_a=False, transpose_b=(False, True))
        self.tensor("input", input, (*HALF, ms.float32), 2)  # 32 bits in routers
        self.tensor("mat2", mat2, (*HALF, ms.float32), 2)
        self.same_dtype("mat2", mat2, "input", input)
        inner = mat2.shape[1 if self.transpose_b else 0]
        self.require(input.shape[1] == inner, "input", input, f"its width must be that of mat2, {inner}")
        right = floats(mat2)
        return tensor(floats(input) @ (right.T if self.transpose_b else right), input.dtype)
